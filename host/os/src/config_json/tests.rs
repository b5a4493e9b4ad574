use std::os::unix::fs::{MetadataExt, symlink};
use std::sync::Barrier;
use std::thread;

use proptest::prelude::*;
use serde_json::json;
use tempfile::TempDir;

use super::*;

/// Creates a folder with a `config.json` of this text.
fn with(text: &[u8]) -> (TempDir, ConfigJson) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("config.json");
    fs::write(&path, text).unwrap();
    (folder, ConfigJson::open(path))
}

fn names_in(folder: &TempDir) -> Vec<String> {
    fs::read_dir(folder.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
        .collect()
}

#[test]
fn a_missing_file_is_an_empty_object_and_is_made_by_the_first_change() {
    let folder = tempfile::tempdir().unwrap();
    let config = ConfigJson::open(folder.path().join("config.json"));
    assert_eq!(config.read().unwrap(), Map::new());
    assert_eq!(config.get("uuid").unwrap(), None);
    config.update(|_| ()).unwrap();
    assert!(names_in(&folder).is_empty(), "nothing changed");
    config
        .update(|map| map.insert("uuid".into(), json!("ab")))
        .unwrap();
    assert_eq!(config.get("uuid").unwrap(), Some(json!("ab")));
    assert_eq!(names_in(&folder), ["config.json"]);
    let mode = fs::metadata(config.path()).unwrap().mode() & 0o777;
    assert_eq!(mode, 0o600, "it holds keys");
}

#[test]
fn unknown_keys_and_their_order_are_kept() {
    let (_folder, config) = with(br#"{"zeta": {"deep": [1, null]}, "uuid": "old", "alpha": 1.5}"#);
    config
        .update(|map| {
            map.insert("uuid".into(), json!("new"));
            map.insert("hostname".into(), json!("gate"));
        })
        .unwrap();
    let text = fs::read_to_string(config.path()).unwrap();
    let map: Map<String, Value> = serde_json::from_str(&text).unwrap();
    let keys: Vec<&str> = map.keys().map(String::as_str).collect();
    assert_eq!(keys, ["zeta", "uuid", "alpha", "hostname"]);
    assert_eq!(map["zeta"], json!({"deep": [1, null]}));
    assert_eq!(map["uuid"], "new");
    assert!(text.ends_with("}\n"));
}

#[test]
fn hostile_content_is_an_error_and_is_left_as_it_is() {
    let deep = [b"{\"a\":".as_slice(), &b"[".repeat(100_000)].concat();
    let large = [b"{\"a\":\"".as_slice(), &b"x".repeat(LONGEST), b"\"}"].concat();
    for text in [
        b"".as_slice(),
        b"null",
        b"[]",
        b"\"text\"",
        b"{",
        b"{\"a\": 1} x",
        b"{\"a\": \"\xff\"}",
        b"\0\0\0\0",
        &deep,
        &large,
    ] {
        let (folder, config) = with(text);
        for error in [
            config.read().unwrap_err(),
            config.get("a").unwrap_err(),
            config
                .update(|map| map.insert("a".into(), json!(1)))
                .map(drop)
                .unwrap_err(),
        ] {
            assert!(error.to_string().contains("config.json"), "{error}");
        }
        assert_eq!(fs::read(config.path()).unwrap(), text);
        assert_eq!(names_in(&folder), ["config.json"]);
    }
}

#[test]
fn a_change_that_makes_it_too_large_is_not_written() {
    let (folder, config) = with(b"{\"a\": 1}");
    let error = config
        .update(|map| map.insert("b".into(), json!("x".repeat(LONGEST))))
        .unwrap_err();
    assert!(matches!(error, ConfigJsonError::TooLarge { .. }), "{error}");
    assert_eq!(fs::read(config.path()).unwrap(), b"{\"a\": 1}");
    assert_eq!(names_in(&folder), ["config.json"]);
}

#[test]
fn a_file_that_cannot_be_written_is_the_file_before() {
    let folder = tempfile::tempdir().unwrap();
    let config = ConfigJson::open(folder.path().join("missing/config.json"));
    let error = config
        .update(|map| map.insert("a".into(), json!(1)))
        .unwrap_err();
    assert!(matches!(error, ConfigJsonError::Write { .. }), "{error}");
    assert!(names_in(&folder).is_empty());
}

#[test]
fn the_file_is_replaced_whole_so_that_an_open_reader_sees_the_one_before() {
    let (folder, config) = with(b"{\"a\": 1}");
    fs::set_permissions(config.path(), fs::Permissions::from_mode(0o640)).unwrap();
    // The remains of a power cut in the middle of a change.
    fs::write(folder.path().join(".config.json.new"), "{\"half").unwrap();
    let mut open = File::open(config.path()).unwrap();
    config
        .update(|map| map.insert("a".into(), json!(2)))
        .unwrap();
    let mut before = String::new();
    open.read_to_string(&mut before).unwrap();
    assert_eq!(before, "{\"a\": 1}");
    assert_eq!(config.get("a").unwrap(), Some(json!(2)));
    assert_eq!(names_in(&folder), ["config.json"]);
    let mode = fs::metadata(config.path()).unwrap().mode() & 0o777;
    assert_eq!(mode, 0o640, "its own mode is kept");
}

#[test]
fn a_link_is_kept() {
    let (folder, config) = with(b"{}");
    let link = folder.path().join("link.json");
    symlink(config.path(), &link).unwrap();
    ConfigJson::open(&link)
        .update(|map| map.insert("a".into(), json!(1)))
        .unwrap();
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    assert_eq!(config.get("a").unwrap(), Some(json!(1)));
}

#[test]
fn writers_wait_for_each_other_and_readers_never_see_half() {
    const WRITERS: usize = 8;
    const EACH: usize = 20;
    let (_folder, config) = with(b"{\"count\": 0}");
    let start = Barrier::new(WRITERS + 1);
    thread::scope(|scope| {
        for _ in 0..WRITERS {
            scope.spawn(|| {
                start.wait();
                for _ in 0..EACH {
                    let increase = |map: &mut Map<String, Value>| {
                        let count = map["count"].as_u64().unwrap();
                        map.insert("count".into(), json!(count + 1));
                    };
                    config.clone().update(increase).unwrap();
                }
            });
        }
        scope.spawn(|| {
            start.wait();
            for _ in 0..100 {
                assert!(config.get("count").unwrap().is_some());
            }
        });
    });
    assert_eq!(config.get("count").unwrap(), Some(json!(WRITERS * EACH)));
}

proptest! {
    #[test]
    fn any_bytes_are_read_or_refused_and_a_refusal_changes_nothing(
        bytes in proptest::collection::vec(any::<u8>(), 0..200)
    ) {
        let (_folder, config) = with(&bytes);
        if config.update(|map| map.insert("a".into(), json!(1))).is_err() {
            prop_assert_eq!(fs::read(config.path()).unwrap(), bytes);
        }
    }
}
