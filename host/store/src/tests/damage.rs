//! Damaged files: set aside with all their companion files, and never lost.

use std::fs;

use super::*;
use crate::database_files::beside;

/// A folder with a closed store that is not empty.
fn written() -> tempfile::TempDir {
    let folder = folder();
    let store = open(folder.path());
    for index in 0..200 {
        let text = "x".repeat(500);
        store
            .put_intent("kind", &index.to_string(), &json!(text))
            .unwrap();
    }
    drop(store);
    folder
}

/// Opens a damaged store: it is empty, works, and the damaged files are set aside unchanged.
fn check_set_aside(folder: &Path) {
    let path = folder.join(FILE_NAME);
    let found = fs::read(&path).unwrap();
    let opened = Store::open(folder).unwrap();
    let aside = opened
        .set_aside
        .unwrap_or_else(|| panic!("{} bytes were taken for a database", found.len()));
    let name = aside.file_name().unwrap().to_str().unwrap();
    assert!(name.starts_with("store.db.corrupt-2"), "{name}");
    assert_eq!(fs::read(&aside).unwrap(), found);
    assert!(opened.store.intents().unwrap().is_empty());
    opened.store.put_intent("kind", "key", &json!(1)).unwrap();
    drop(opened.store);
    assert_eq!(
        open(folder).intents().unwrap().len(),
        1,
        "the next start is as any other"
    );
}

#[test]
fn random_bytes_are_set_aside() {
    let folder = folder();
    let mut bytes = vec![0; 10_000];
    getrandom::fill(&mut bytes).unwrap();
    fs::write(folder.path().join(FILE_NAME), bytes).unwrap();
    check_set_aside(folder.path());
}

#[test]
fn a_text_file_is_set_aside() {
    let folder = folder();
    fs::write(folder.path().join(FILE_NAME), "not a database").unwrap();
    check_set_aside(folder.path());
}

#[test]
fn truncated_files_are_set_aside() {
    let whole = fs::metadata(written().path().join(FILE_NAME))
        .unwrap()
        .len();
    for length in [
        0,
        1,
        50,
        99,
        100,
        2048,
        4096,
        8192,
        whole / 2,
        whole - 4096,
        whole - 1,
    ] {
        let folder = written();
        fs::OpenOptions::new()
            .write(true)
            .open(folder.path().join(FILE_NAME))
            .unwrap()
            .set_len(length)
            .unwrap();
        check_set_aside(folder.path());
    }
}

#[test]
fn pages_that_were_overwritten_are_found() {
    // The header, the schema, and pages that a query of another table would not read.
    let whole = fs::metadata(written().path().join(FILE_NAME))
        .unwrap()
        .len();
    for page in [0, 1, whole / 4096 / 2, whole / 4096 - 1] {
        let folder = written();
        let path = folder.path().join(FILE_NAME);
        let mut bytes = fs::read(&path).unwrap();
        let start = usize::try_from(page * 4096).unwrap();
        bytes[start..start + 4096].fill(0xa5);
        fs::write(&path, bytes).unwrap();
        check_set_aside(folder.path());
    }
}

#[test]
fn another_programs_database_is_set_aside() {
    let folder = folder();
    let path = folder.path().join(FILE_NAME);
    let other = rusqlite::Connection::open(&path).unwrap();
    other
        .execute_batch("CREATE TABLE config (theirs TEXT); PRAGMA user_version = 1;")
        .unwrap();
    drop(other);
    let opened = Store::open(folder.path()).unwrap();
    assert!(opened.set_aside.is_some());
}

#[test]
fn a_database_whose_schema_cannot_be_brought_up_is_set_aside() {
    let folder = folder();
    let path = folder.path().join(FILE_NAME);
    let other = rusqlite::Connection::open(&path).unwrap();
    other
        .execute_batch("CREATE TABLE config (theirs TEXT);")
        .unwrap();
    drop(other);
    let opened = Store::open(folder.path()).unwrap();
    assert!(opened.set_aside.is_some());
}

#[test]
fn a_damaged_identity_is_set_aside() {
    for damage in [
        "UPDATE setting SET value = 'x' WHERE name = 'device_uuid'",
        "UPDATE api_key SET key = ''",
        "UPDATE api_key SET service = '/'",
    ] {
        let folder = written();
        rusqlite::Connection::open(folder.path().join(FILE_NAME))
            .unwrap()
            .execute_batch(damage)
            .unwrap();
        check_set_aside(folder.path());
    }
}

#[test]
fn a_device_whose_store_is_damaged_or_gone_is_still_the_same_device() {
    let given = "0123456789abcdef0123456789abcdef".parse().unwrap();
    type Damage = fn(&Path);
    let damages: [(&str, Damage); 5] = [
        ("truncated", |path| fs::write(path, "").unwrap()),
        ("overwritten", |path| fs::write(path, [0xa5; 9000]).unwrap()),
        ("cut", |path| {
            let file = fs::OpenOptions::new().write(true).open(path).unwrap();
            file.set_len(5000).unwrap();
        }),
        ("removed", |path| fs::remove_file(path).unwrap()),
        ("without its uuid", |path| {
            let database = rusqlite::Connection::open(path).unwrap();
            let damaged = database.execute("UPDATE setting SET value = 'x'", []);
            assert!(damaged.unwrap() > 0);
        }),
    ];
    for (what, damage) in damages {
        let folder = written();
        let mut store = open(folder.path());
        let first = store.device_uuid().clone();
        store.adopt_device_uuid(&given).unwrap();
        drop(store);
        damage(&folder.path().join(FILE_NAME));
        let store = Store::open(folder.path()).unwrap().store;
        assert_eq!(*store.device_uuid(), given, "{what}");
        assert_eq!(store.former_uuids().unwrap(), [first], "{what}");
        assert!(store.intents().unwrap().is_empty(), "{what}");
    }
}

#[test]
fn a_damaged_identity_beside_a_sound_store_is_written_again() {
    let folder = written();
    let uuid = open(folder.path()).device_uuid().clone();
    let file = folder.path().join("identity");
    let sound = fs::read(&file).unwrap();
    for damaged in ["", "{", "[]", r#"{"uuid":"x","former":[]}"#] {
        fs::write(&file, damaged).unwrap();
        assert_eq!(*open(folder.path()).device_uuid(), uuid);
        assert_eq!(fs::read(&file).unwrap(), sound);
    }
    // A sound store takes precedence over the file.
    let other = written();
    fs::copy(other.path().join("identity"), &file).unwrap();
    assert_eq!(*open(folder.path()).device_uuid(), uuid);
    assert_eq!(fs::read(&file).unwrap(), sound);
}

#[test]
fn a_first_start_that_was_cut_short_is_no_damage() {
    let folder = folder();
    let new = folder.path().join(format!("{FILE_NAME}.new"));
    fs::write(&new, "half").unwrap();
    fs::write(beside(&new, "-wal"), "half").unwrap();
    open(folder.path());
    assert!(!new.exists());
}

#[test]
fn a_newer_schema_is_refused_and_left_alone() {
    let folder = written();
    let path = folder.path().join(FILE_NAME);
    let newer = rusqlite::Connection::open(&path).unwrap();
    newer.pragma_update(None, "user_version", 99).unwrap();
    drop(newer);
    let before = fs::read(&path).unwrap();
    let refused = Store::open(folder.path()).unwrap_err();
    assert!(
        refused
            .to_string()
            .contains("was written by a newer supervisor (schema 99, this one knows up to 4)"),
        "{refused}"
    );
    assert_eq!(fs::read(&path).unwrap(), before);
    let names = fs::read_dir(folder.path()).unwrap();
    let names = names.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let asides = names.filter(|name| name.contains(".corrupt-"));
    assert_eq!(asides.count(), 0, "nothing was set aside");
}

#[test]
fn the_newest_that_were_set_aside_are_kept_as_they_are() {
    let folder = folder();
    let path = folder.path().join(FILE_NAME);
    // From a clock that was ahead, and the remains of a kill between two renames.
    let ahead = beside(&path, ".corrupt-29991231T235959Z-3");
    let log_alone = beside(&path, ".corrupt-20010101T000000Z-4");
    let somebody_elses = beside(&path, ".corrupt-by-hand");
    for file in [&ahead, &beside(&log_alone, "-wal"), &somebody_elses] {
        fs::write(file, "before").unwrap();
    }
    let mut asides = Vec::new();
    for index in 0..12 {
        fs::write(&path, format!("damage {index}")).unwrap();
        fs::write(beside(&path, "-wal"), format!("log {index}")).unwrap();
        let opened = Store::open(folder.path()).unwrap();
        let aside = opened.set_aside.unwrap();
        assert_eq!(
            fs::read_to_string(&aside).unwrap(),
            format!("damage {index}"),
            "the newest is always there"
        );
        asides.push(aside);
    }
    for gone in asides[..9].iter().chain([&ahead, &log_alone]) {
        for companion in ["", "-wal"] {
            assert!(!beside(gone, companion).exists(), "{}", gone.display());
        }
    }
    assert!(somebody_elses.exists());
    for (index, kept) in asides.iter().enumerate().skip(9) {
        assert_eq!(fs::read_to_string(kept).unwrap(), format!("damage {index}"));
    }
}

#[test]
fn a_left_over_log_is_not_used_for_a_new_store() {
    let folder = folder();
    let store = open(folder.path());
    store.put_intent("kind", "key", &json!(1)).unwrap();
    let path = folder.path().join(FILE_NAME);
    let log = fs::read(beside(&path, "-wal")).unwrap();
    assert!(!log.is_empty());
    drop(store);
    fs::remove_file(&path).unwrap();
    fs::write(beside(&path, "-wal"), log).unwrap();
    assert!(open(folder.path()).intents().unwrap().is_empty());
}

#[test]
fn a_folder_that_cannot_be_used_is_named() {
    let folder = folder();
    let file = folder.path().join("file");
    fs::write(&file, "").unwrap();
    let refused = Store::open(&file).unwrap_err();
    assert!(
        refused
            .to_string()
            .starts_with("failed to use the state folder `"),
        "{refused}"
    );

    fs::create_dir(folder.path().join(FILE_NAME)).unwrap();
    let refused = Store::open(folder.path()).unwrap_err();
    assert!(matches!(refused, StoreError::Open { .. }), "{refused:?}");
}
