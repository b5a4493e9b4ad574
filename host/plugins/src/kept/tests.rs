//! Which versions are kept, and in what form.

use std::fs;

use super::*;
use crate::signature;

fn written(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder.join(FOLDER)).unwrap();
    let mut names: Vec<_> = entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[test]
fn two_versions_of_a_file_are_kept_and_found_again() {
    let root = tempfile::tempdir().unwrap();
    let file = root.path().join("a.wasm");
    let kept = KeptVersions::open(root.path());
    assert_eq!(kept.versions(&file), None);
    let mut digests = Vec::new();
    for version in ["one", "two", "three"] {
        fs::write(&file, version).unwrap();
        let digest = compiled_code::digest(version.as_bytes());
        let signature = Some(version.as_bytes());
        kept.folder.keep(&file, &digest, signature).unwrap();
        digests.push(digest);
    }
    let [_, two, three] = &digests[..] else {
        unreachable!()
    };
    let versions = Versions {
        latest: three.clone(),
        before: Some(two.clone()),
    };
    let again = KeptVersions::open(root.path());
    assert_eq!(again.versions(&file), Some(versions));
    assert_eq!(fs::read(again.component(two)).unwrap(), b"two");
    let mut expected = vec![INDEX.to_owned()];
    for digest in [two, three] {
        expected.extend([component_name(digest), signature_name(digest)]);
    }
    expected.sort();
    assert_eq!(written(root.path()), expected);
    // A content other than the one that served.
    fs::write(&file, "four").unwrap();
    kept.folder.keep(&file, "5f0c", None).unwrap();
    assert_eq!(written(root.path()), expected);
}

#[tokio::test]
async fn a_version_that_serves_again_while_another_is_being_written_is_kept_after_it() {
    let root = tempfile::tempdir().unwrap();
    let file = root.path().join("a.wasm");
    let mut kept = KeptVersions::open(root.path());
    let versions = ["zero", "one", "two"];
    let [zero, one, two] = versions.map(|version| compiled_code::digest(version.as_bytes()));
    for (version, digest) in [("zero", &zero), ("one", &one)] {
        fs::write(&file, version).unwrap();
        kept.folder.keep(&file, digest, None).unwrap();
    }
    let folder = Arc::clone(&kept.folder);
    let writing = folder.writing.lock();
    fs::write(&file, "two").unwrap();
    kept.keep(&file, &two, None);
    fs::write(&file, "one").unwrap();
    kept.keep(&file, &one, None);
    let writes = kept.writes();
    assert_eq!(writes.len(), 2, "both are written");
    drop(writing);
    writes.close();
    writes.wait().await;
    let expected = Versions {
        latest: one,
        before: Some(zero.clone()),
    };
    assert_eq!(kept.versions(&file), Some(expected));
    assert!(kept.component(&zero).exists());
}

#[tokio::test]
async fn a_copy_is_waited_for_until_it_is_complete() {
    let root = tempfile::tempdir().unwrap();
    let file = root.path().join("a.wasm");
    fs::write(&file, "one").unwrap();
    let digest = compiled_code::digest(b"one");
    let mut kept = KeptVersions::open(root.path());
    let folder = Arc::clone(&kept.folder);
    let other_write = folder.writing.lock();
    kept.keep(&file, &digest, None);
    assert!(!kept.writes().is_empty());
    drop(other_write);
    kept.writes().close();
    kept.writes().wait().await;
    assert_eq!(kept.versions(&file).unwrap().latest, digest);
}

#[test]
fn a_version_is_kept_with_the_signature_that_it_was_judged_with() {
    let root = tempfile::tempdir().unwrap();
    let file = root.path().join("a.wasm");
    let kept = KeptVersions::open(root.path());
    fs::write(&file, "one").unwrap();
    // The next version's signature, which arrives before its file.
    fs::write(signature::file_beside(&file), "of two").unwrap();
    let digest = compiled_code::digest(b"one");
    for judged_with in [Some("of one"), None] {
        let signature = judged_with.map(str::as_bytes);
        kept.folder.keep(&file, &digest, signature).unwrap();
        let beside = signature::file_beside(&kept.component(&digest));
        let kept = signature::read(&beside).unwrap();
        assert_eq!(kept.as_deref(), signature, "{judged_with:?}");
    }
}

#[test]
fn a_damaged_list_is_no_list_and_nothing_is_kept_beyond_the_bound() {
    let root = tempfile::tempdir().unwrap();
    let file = root.path().join("a.wasm");
    fs::write(&file, "one").unwrap();
    let digest = compiled_code::digest(b"one");
    let kept = KeptVersions::open(root.path());
    kept.folder.keep(&file, &digest, None).unwrap();
    // A sparse file: it has the length but takes no space.
    let large = fs::File::options()
        .write(true)
        .open(kept.component(&digest))
        .unwrap();
    large.set_len(TOTAL).unwrap();
    fs::write(&file, "two").unwrap();
    let digest = compiled_code::digest(b"two");
    let error = kept.folder.keep(&file, &digest, None).unwrap_err();
    assert!(error.to_string().contains("256 MiB"), "{error}");
    assert!(!kept.component(&digest).exists());
    let index = root.path().join(FOLDER).join(INDEX);
    for damaged in [
        "",
        "[]",
        "{\"a\":{\"latest\":1}}",
        "{\"a\":{\"latest\":\"../a\",\"before\":null}}",
    ] {
        fs::write(&index, damaged).unwrap();
        assert!(KeptVersions::open(root.path()).files().is_empty());
    }
}

#[tokio::test]
async fn a_file_that_somebody_removed_is_forgotten_and_one_on_a_missing_disk_is_not() {
    let root = tempfile::tempdir().unwrap();
    let disk = root.path().join("disk");
    fs::create_dir(&disk).unwrap();
    let (removed, away) = (root.path().join("a.wasm"), disk.join("b.wasm"));
    let mut kept = KeptVersions::open(root.path());
    for file in [&removed, &away] {
        fs::write(file, "one").unwrap();
        let digest = compiled_code::digest(b"one");
        kept.folder.keep(file, &digest, None).unwrap();
    }
    fs::remove_file(&removed).unwrap();
    fs::rename(&disk, root.path().join("elsewhere")).unwrap();
    kept.forget_removed(|_| false);
    assert_eq!(kept.files(), [away]);
}
