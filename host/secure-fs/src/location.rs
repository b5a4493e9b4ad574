//! Checks who decides what a path refers to.

use std::ffi::OsString;
use std::fs::{self, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Component, Path, PathBuf};

/// Others may write into such a folder, but can neither rename nor remove what is not theirs.
const STICKY: u32 = 0o1000;
/// How many links are followed; the kernel follows as many.
const MOST_LINKS: usize = 40;

/// Why it is unknown what a path refers to by the time it is used.
#[derive(Debug, thiserror::Error)]
pub enum LocationError {
    /// Part of the path cannot be inspected.
    #[error("failed to inspect `{}`, on the path `{}`: {source}", place.display(), path.display())]
    Inspect {
        /// The path.
        path: PathBuf,
        /// The part of it.
        place: PathBuf,
        /// The operating system's error.
        source: io::Error,
    },
    /// Somebody else can put a link to another folder there.
    #[error(
        "`{}` leads through `{}`, which others can replace or change (it belongs to user {owner} and has mode {mode:04o}): use a path through folders that only root can write, or check what is there, then `chown root {place}` and `chmod go-w {place}`",
        path.display(), place.display(), place = shell_word(place)
    )]
    Replaceable {
        /// The path.
        path: PathBuf,
        /// The folder that others can write, or what belongs to them in a folder that everybody can write.
        place: PathBuf,
        /// Its owner's uid.
        owner: u32,
        /// Its permissions.
        mode: u32,
    },
}

/// Returns a path as a word of a command that somebody may paste into a shell.
fn shell_word(path: &Path) -> String {
    shell_words::quote(&path.to_string_lossy()).into_owned()
}

/// A user and a group.
#[derive(Debug, Clone, Copy)]
struct Identity {
    user: u32,
    group: u32,
}

/// Checks that nobody but root and this process's own user can change what `path` refers to: neither by replacing a
/// folder or a link on the way to it, nor by replacing itself. Links are followed and their places are checked too, so
/// links in folders of root are allowed. The owner of what it refers to makes no difference. If something on the path
/// is missing, the folders above it are checked.
///
/// What was checked stays so until one of the folders on the way gets another owner or mode. Accesses the disk.
///
/// # Errors
/// [`LocationError`]
pub fn check_location(path: &Path) -> Result<(), LocationError> {
    let own = Identity {
        user: rustix::process::geteuid().as_raw(),
        group: rustix::process::getegid().as_raw(),
    };
    check(path, own)
}

fn check(path: &Path, own: Identity) -> Result<(), LocationError> {
    let inspect = |place: &Path, source| LocationError::Inspect {
        path: path.to_owned(),
        place: place.to_owned(),
        source,
    };
    let replaceable = |place: &Path, about: &Metadata| LocationError::Replaceable {
        path: path.to_owned(),
        place: place.to_owned(),
        owner: about.uid(),
        mode: about.mode() & 0o7777,
    };
    let absolute = std::path::absolute(path).map_err(|error| inspect(path, error))?;
    // From above: a folder is looked at once nobody else can replace it any more.
    let mut folder = PathBuf::from("/");
    let mut rest = names(&absolute);
    let mut links = 0;
    while let Some(name) = rest.pop() {
        if name == ".." {
            folder.pop();
            continue;
        }
        let about = fs::symlink_metadata(&folder).map_err(|error| inspect(&folder, error))?;
        let others_write = others_can_write(&about, own);
        if !own.trusts(about.uid()) || (others_write && about.mode() & STICKY == 0) {
            return Err(replaceable(&folder, &about));
        }
        let entry = folder.join(name);
        let about = match fs::symlink_metadata(&entry) {
            Err(error) if is_missing(&error) => return Ok(()),
            about => about.map_err(|error| inspect(&entry, error))?,
        };
        if others_write && !own.trusts(about.uid()) {
            return Err(replaceable(&entry, &about));
        }
        if !about.is_symlink() {
            folder = entry;
            continue;
        }
        links += 1;
        if links > MOST_LINKS {
            return Err(inspect(&entry, rustix::io::Errno::LOOP.into()));
        }
        let target = fs::read_link(&entry).map_err(|error| inspect(&entry, error))?;
        if target.is_absolute() {
            folder = PathBuf::from("/");
        }
        rest.extend(names(&target));
    }
    Ok(())
}

/// Returns the names in a path, the first one last.
fn names(path: &Path) -> Vec<OsString> {
    let parts = path.components().rev().filter_map(|part| match part {
        Component::Normal(_) | Component::ParentDir => Some(part.as_os_str().to_owned()),
        Component::Prefix(_) | Component::RootDir | Component::CurDir => None,
    });
    parts.collect()
}

/// Returns whether there is nothing at a path, or a file above it.
fn is_missing(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
    )
}

fn others_can_write(about: &Metadata, own: Identity) -> bool {
    let by_group = about.mode() & 0o020 != 0 && ![0, own.group].contains(&about.gid());
    by_group || about.mode() & 0o002 != 0
}

impl Identity {
    fn trusts(self, user: u32) -> bool {
        user == 0 || user == self.user
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt as _, chown, symlink};

    use super::*;

    const NOBODY: u32 = 65534;

    fn set_mode(path: &Path, mode: u32) {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }

    /// Returns which place on the path others can replace.
    fn place(path: &Path) -> Option<PathBuf> {
        match check_location(path) {
            Ok(()) => None,
            Err(error @ LocationError::Replaceable { .. }) => {
                let text = error.to_string();
                let LocationError::Replaceable { place, .. } = error else {
                    return None;
                };
                assert!(text.contains(&format!("`{}`", path.display())), "{text}");
                let remedy = format!("`chmod go-w {}`", place.display());
                assert!(text.contains(&remedy), "{text}");
                Some(place)
            }
            Err(error) => panic!("{error}"),
        }
    }

    #[test]
    fn the_remedy_quotes_a_place_for_the_shell() {
        let error = LocationError::Replaceable {
            path: "/srv/my plugins/data".into(),
            place: "/srv/my plugins".into(),
            owner: 7,
            mode: 0o777,
        };
        let remedy = "`chown root '/srv/my plugins'` and `chmod go-w '/srv/my plugins'`";
        assert!(error.to_string().ends_with(remedy), "{error}");
    }

    #[test]
    fn a_folder_below_one_that_others_can_write_can_be_replaced() {
        let root = tempfile::tempdir().unwrap();
        let parent = root.path().join("shared");
        let folder = parent.join("data");
        fs::create_dir_all(&folder).unwrap();
        assert_eq!(place(&folder), None);
        assert_eq!(place(&folder.join("missing/below")), None);
        let file = root.path().join("file");
        fs::write(&file, "").unwrap();
        assert_eq!(place(&file.join("below")), None);
        // Others may write into the folder itself: they can replace what is in it, but not the folder.
        set_mode(&folder, 0o777);
        assert_eq!(place(&folder), None);
        assert_eq!(place(&folder.join("below")), Some(folder.clone()));
        set_mode(&parent, 0o777);
        assert_eq!(place(&folder), Some(parent.clone()));
        assert_eq!(place(&parent.join("missing")), Some(parent.clone()));
        // In such a folder as `/tmp`, what is ours stays ours.
        set_mode(&parent, 0o1777);
        assert_eq!(place(&folder), None);
        // A group is somebody else, unless it is our own.
        set_mode(&parent, 0o775);
        assert_eq!(place(&folder), None);
        let about = fs::metadata(&parent).unwrap();
        let own = |user, group| check(&folder, Identity { user, group });
        if about.gid() == 0 {
            chown(&parent, None, Some(NOBODY)).unwrap();
        }
        assert!(own(about.uid(), 4711).is_err());
        assert!(own(about.uid(), fs::metadata(&parent).unwrap().gid()).is_ok());
    }

    /// Whoever may write the folder around a link replaces a folder by a link, for example to `/etc`.
    #[test]
    fn a_link_counts_by_its_place_and_by_where_it_leads() {
        let root = tempfile::tempdir().unwrap();
        let (ours, shared) = (root.path().join("ours"), root.path().join("shared"));
        for folder in [&ours, &shared] {
            fs::create_dir_all(folder.join("data")).unwrap();
        }
        let link = ours.join("link");
        symlink("/etc", &link).unwrap();
        assert_eq!(place(&link), None);
        set_mode(&shared, 0o777);
        let swapped = shared.join("swapped");
        symlink("/etc", &swapped).unwrap();
        assert_eq!(place(&swapped), Some(shared.clone()));
        assert_eq!(place(&swapped.join("conf.d")), Some(shared.clone()));
        for target in ["../shared/data", "../ours/../shared/data"] {
            fs::remove_file(&link).unwrap();
            symlink(target, &link).unwrap();
            assert_eq!(place(&link), Some(shared.clone()), "{target}");
        }
        fs::remove_file(&link).unwrap();
        symlink("link", &link).unwrap();
        let error = check_location(&link).unwrap_err();
        assert!(matches!(error, LocationError::Inspect { .. }), "{error}");
    }

    #[test]
    fn a_path_through_a_folder_of_another_user_can_be_replaced() {
        if !rustix::process::geteuid().is_root() {
            return;
        }
        let root = tempfile::tempdir().unwrap();
        let (home, sticky) = (root.path().join("home"), root.path().join("sticky"));
        for folder in [&home, &sticky] {
            fs::create_dir_all(folder.join("data")).unwrap();
        }
        // A service's folder in one of root's is the service's alone.
        chown(home.join("data"), Some(NOBODY), Some(NOBODY)).unwrap();
        assert_eq!(place(&home.join("data")), None);
        chown(&home, Some(NOBODY), Some(NOBODY)).unwrap();
        assert_eq!(place(&home.join("data")), Some(home.clone()));
        set_mode(&sticky, 0o1777);
        assert_eq!(place(&sticky.join("data")), None);
        // Its owner may rename it, and put a link there.
        let data = sticky.join("data");
        chown(&data, Some(NOBODY), Some(NOBODY)).unwrap();
        assert_eq!(place(&data), Some(data.clone()));
        fs::remove_dir(&data).unwrap();
        symlink("/etc", &data).unwrap();
        std::os::unix::fs::lchown(&data, Some(NOBODY), Some(NOBODY)).unwrap();
        assert_eq!(place(&data), Some(data.clone()));
    }
}
