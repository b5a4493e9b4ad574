use std::fs;
use std::io;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown, lchown, symlink};
use std::path::Path;

use super::*;

/// A user without any rights; the tests of owners run as root.
const NOBODY: u32 = 65534;

fn mode(path: &Path) -> u32 {
    fs::symlink_metadata(path).unwrap().permissions().mode() & 0o7777
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

#[test]
fn a_folder_of_somebody_else_is_refused_and_says_what_to_do() {
    let root = tempfile::tempdir().unwrap();
    let path = root.path().join("theirs");
    fs::create_dir(&path).unwrap();
    if is_root() {
        chown(&path, Some(NOBODY), Some(NOBODY)).unwrap();
        for access in [Access::Private, Access::Readable] {
            let error = SecureDir::open(&path, access).unwrap_err().to_string();
            assert!(error.contains("belongs to the user 65534"), "{error}");
        }
        chown(&path, Some(0), Some(0)).unwrap();
    }
    for loose in [0o775, 0o757, 0o1777] {
        fs::set_permissions(&path, fs::Permissions::from_mode(loose)).unwrap();
        let error = SecureDir::open(&path, Access::Readable).unwrap_err();
        assert!(matches!(error, DirError::Mode { mode, .. } if mode == loose));
    }
    // In a trusted folder, nobody else can have given it this mode.
    let parent = SecureDir::open(root.path(), Access::Private).unwrap();
    parent.existing_dir("theirs", Access::Readable).unwrap();
    assert_eq!(mode(&path), 0o755);
    // A folder that should be only for its owner is made so.
    SecureDir::open(&path, Access::Private).unwrap();
    assert_eq!(mode(&path), 0o700);
}

#[test]
fn a_private_folder_in_which_others_put_something_is_refused() {
    if !is_root() {
        return;
    }
    let root = tempfile::tempdir().unwrap();
    let (path, planted) = (
        root.path().join("state"),
        root.path().join("state/store.db"),
    );
    fs::create_dir(&path).unwrap();
    fs::write(path.join("own"), "").unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o777)).unwrap();
    for is_link in [false, true] {
        if is_link {
            symlink("/etc/passwd", &planted).unwrap();
        } else {
            fs::write(&planted, "").unwrap();
        }
        lchown(&planted, Some(NOBODY), Some(NOBODY)).unwrap();
        let error = SecureDir::open(&path, Access::Private).unwrap_err();
        assert!(
            matches!(&error, DirError::Entry { path, owner: NOBODY } if *path == planted),
            "{error}"
        );
        assert_eq!(mode(&path), 0o777);
        fs::remove_file(&planted).unwrap();
    }
    SecureDir::open(&path, Access::Private).unwrap();
    assert_eq!(mode(&path), 0o700);
}

#[test]
fn what_stands_in_the_place_of_a_folder_is_not_followed() {
    let root = tempfile::tempdir().unwrap();
    let elsewhere = root.path().join("elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    let link = root.path().join("link");
    symlink(&elsewhere, &link).unwrap();
    let file = root.path().join("file");
    fs::write(&file, "").unwrap();
    for path in [&link, &file] {
        let error = SecureDir::open(path, Access::Readable).unwrap_err();
        assert!(matches!(error, DirError::NoFolder { .. }), "{error}");
        let opened = SecureDir::open_or_replace(path, Access::Readable).unwrap();
        assert!(opened.is_in_place());
        assert!(fs::symlink_metadata(path).unwrap().is_dir());
    }
    assert_eq!(fs::read_dir(&elsewhere).unwrap().count(), 0);
    let parent = SecureDir::open(root.path(), Access::Private).unwrap();
    symlink(&elsewhere, root.path().join("inner")).unwrap();
    assert!(parent.dir("inner", Access::Readable).is_err());
    assert!(parent.shared_dir("inner", Some(0o1777)).is_err());
    assert_eq!(mode(&elsewhere), 0o755);
}

#[test]
fn a_folder_that_others_made_is_moved_away_whole() {
    if !is_root() {
        return;
    }
    let root = tempfile::tempdir().unwrap();
    let path = root.path().join("tmp/ours");
    fs::create_dir_all(&path).unwrap();
    fs::write(path.join("bait"), "").unwrap();
    chown(&path, Some(NOBODY), Some(NOBODY)).unwrap();
    let dir = SecureDir::open_or_replace(&path, Access::Readable).unwrap();
    assert_eq!(fs::metadata(&path).unwrap().uid(), 0);
    assert_eq!(mode(&path), 0o755);
    assert!(read_dir_names(&dir).unwrap().is_empty());
    let moved = fs::read_dir(root.path().join("tmp")).unwrap();
    let moved: Vec<_> = moved
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.starts_with("ours.untrusted-"))
        .collect();
    assert_eq!(moved.len(), 1, "{moved:?}");
    // Our own folder stays where it is.
    let again = SecureDir::open_or_replace(&path, Access::Readable).unwrap();
    assert!(dir.is_in_place() && again.is_in_place());
    fs::remove_dir(&path).unwrap();
    assert!(!dir.is_in_place());
}

#[test]
fn several_that_distrust_a_folder_replace_it_once() {
    for _ in 0..50 {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("ours");
        symlink(root.path().join("elsewhere"), &path).unwrap();
        std::thread::scope(|threads| {
            let open = || SecureDir::open_or_replace(&path, Access::Readable).unwrap();
            let opened: Vec<_> = (0..8).map(|_| threads.spawn(open)).collect();
            let opened: Vec<_> = opened.into_iter().map(|one| one.join().unwrap()).collect();
            assert!(opened.iter().all(SecureDir::is_in_place));
        });
        assert_eq!(fs::read_dir(root.path()).unwrap().count(), 2);
    }
}

#[test]
fn files_are_made_new_and_read_within_a_bound() {
    let root = tempfile::tempdir().unwrap();
    let dir = SecureDir::open(&root.path().join("run"), Access::Private).unwrap();
    assert!(dir.read("state", 10).unwrap().is_none());
    let victim = root.path().join("victim");
    fs::write(&victim, "untouched").unwrap();
    let folder = root.path().join("run");
    symlink(&victim, folder.join("state")).unwrap();
    symlink(&victim, folder.join("state.new")).unwrap();
    assert!(dir.read("state", 100).is_err());
    dir.replace("state", b"one").unwrap();
    assert_eq!(dir.read("state", 3).unwrap().unwrap(), b"one");
    assert_eq!(mode(&folder.join("state")), 0o600);
    assert_eq!(fs::read_to_string(&victim).unwrap(), "untouched");
    let long = dir.read("state", 2).unwrap_err();
    assert_eq!(long.kind(), io::ErrorKind::InvalidData);
    for (what, name) in [("/dev/zero", "zero"), ("/proc/self/mem", "mem")] {
        symlink(what, folder.join(name)).unwrap();
        assert!(dir.read(name, 100).is_err());
    }
    rustix::fs::mkfifoat(rustix::fs::CWD, folder.join("pipe"), 0o600.into()).unwrap();
    assert_eq!(
        dir.read("pipe", 100).unwrap_err().kind(),
        io::ErrorKind::InvalidData
    );
    dir.remove("state").unwrap();
    dir.remove("state").unwrap();
    for name in ["", ".", "..", "../victim", "a/b", "a\0b"] {
        assert!(dir.read(name, 100).is_err(), "{name:?}");
        assert!(dir.replace(name, b"").is_err(), "{name:?}");
        assert!(dir.dir(name, Access::Private).is_err(), "{name:?}");
    }
}

#[test]
fn a_file_that_never_ends_is_refused_and_not_waited_for() {
    let root = tempfile::tempdir().unwrap();
    let pipe = root.path().join("pipe");
    rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, 0o600.into()).unwrap();
    let log = root.path().join("log");
    // It looks like a plain file, and its reader waits for the next line of the kernel.
    symlink("/proc/kmsg", &log).unwrap();
    // Only root may open it; everybody may open this one.
    let version = root.path().join("version");
    symlink("/proc/version", &version).unwrap();
    for path in [&pipe, Path::new("/dev/zero"), root.path(), &version] {
        let error = read_beginning(path, 10).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidData, "{error}");
        assert!(error.to_string().contains("in its place"), "{error}");
    }
    assert!(read_beginning(&log, 10).is_err());
    let plain = root.path().join("plain");
    fs::write(&plain, "content").unwrap();
    let link = root.path().join("link");
    symlink(&plain, &link).unwrap();
    assert_eq!(read_beginning(&link, 4).unwrap(), b"cont");
    assert_eq!(read_beginning(&link, 40).unwrap(), b"content");
    let missing = read_beginning(&root.path().join("none"), 4).unwrap_err();
    assert_eq!(missing.kind(), io::ErrorKind::NotFound);
}
