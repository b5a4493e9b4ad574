//! The data of plugins, and its limits.

use super::*;
use crate::plugin_usage::Usage;

fn set(
    store: &Store,
    plugin: &str,
    key: &str,
    value: &[u8],
    lifetime: Option<Duration>,
) -> Result<(), PluginDataError> {
    let change = ValueChange {
        lifetime,
        ..ValueChange::set(value)
    };
    assert!(store.plugin_change(plugin, key, &change)?);
    Ok(())
}

fn compare_and_set(
    store: &Store,
    plugin: &str,
    key: &str,
    expected: Option<&[u8]>,
    value: Option<&[u8]>,
) -> Result<bool, PluginDataError> {
    let change = ValueChange {
        condition: Condition::Holds(expected),
        value,
        lifetime: None,
    };
    store.plugin_change(plugin, key, &change)
}

#[test]
fn plugins_have_spaces_of_their_own() {
    let folder = folder();
    let store = open(folder.path());
    set(&store, "one", "a", b"1", None).unwrap();
    set(&store, "two", "a", b"\0\xff", None).unwrap();
    set(&store, "one", "a", b"", None).unwrap();
    assert_eq!(store.plugin_get("one", "a").unwrap(), Some(Vec::new()));
    assert_eq!(
        store.plugin_get("two", "a").unwrap(),
        Some(b"\0\xff".to_vec())
    );
    assert_eq!(store.plugin_get("three", "a").unwrap(), None);
    store.plugin_delete("one", "a").unwrap();
    store.plugin_delete("one", "a").unwrap();
    assert_eq!(store.plugin_get("one", "a").unwrap(), None);
}

#[test]
fn another_process_reads_a_value_while_the_store_is_open_and_without_a_store_there_is_none() {
    let folder = folder();
    let path = folder.path();
    assert_eq!(read_plugin_value(path, "one", "a").unwrap(), None);
    assert_eq!(std::fs::read_dir(path).unwrap().count(), 0);
    let store = open(path);
    set(&store, "one", "a", b"1", None).unwrap();
    for (plugin, key, expected) in [
        ("one", "a", Some(b"1".to_vec())),
        ("one", "b", None),
        ("two", "a", None),
    ] {
        assert_eq!(read_plugin_value(path, plugin, key).unwrap(), expected);
    }
    drop(store);
    let value = read_plugin_value(path, "one", "a").unwrap();
    assert_eq!(value, Some(b"1".to_vec()));
}

#[test]
fn a_plugins_keys_are_found_by_prefix() {
    let folder = folder();
    let store = open(folder.path());
    for key in ["b/2", "b/1", "a", "b", "c", "b%", "é", ""] {
        set(&store, "p", key, b"", None).unwrap();
    }
    set(&store, "other", "b/3", b"", None).unwrap();
    for (prefix, keys) in [
        ("", vec!["", "a", "b", "b%", "b/1", "b/2", "c", "é"]),
        ("b", vec!["b", "b%", "b/1", "b/2"]),
        ("b/", vec!["b/1", "b/2"]),
        ("b%", vec!["b%"]),
        ("d", vec![]),
        ("é", vec!["é"]),
    ] {
        assert_eq!(store.plugin_keys("p", prefix).unwrap(), keys, "{prefix:?}");
    }
}

#[test]
fn a_plugin_keeps_to_its_limits() {
    let folder = folder();
    let store = open(folder.path());
    let refused = |key: &str, value: &[u8]| match set(&store, "p", key, value, None) {
        Err(PluginDataError::TooLarge(text)) => text,
        other => panic!("not refused: {other:?}"),
    };
    set(&store, "p", &"k".repeat(MAX_KEY), b"", None).unwrap();
    assert_eq!(
        refused(&"é".repeat(129), b""),
        "a key of 258 bytes is over the limit of 256"
    );
    assert_eq!(
        refused("k", &vec![0; MAX_VALUE + 1]),
        "a value of 65537 bytes is over the limit of 65536"
    );
    store.plugin_delete("p", &"k".repeat(MAX_KEY)).unwrap();

    // 15 of them, each with a key of 2 bytes, leave 65,536 - 30 bytes of the 16th.
    let value = vec![0; MAX_VALUE];
    for index in 10..25 {
        set(&store, "p", &index.to_string(), &value, None).unwrap();
    }
    set(&store, "p", "xx", &value[..MAX_VALUE - 32], None).unwrap();
    assert!(refused("y", b"").contains("over the limit of 1048576"));
    set(&store, "p", "xx", &value[..MAX_VALUE - 33], None).unwrap();
    set(&store, "p", "y", b"", None).unwrap();
    set(&store, "other", "y", &value, None).unwrap();
    assert_eq!(store.plugin_get("p", "y").unwrap(), Some(Vec::new()));
}

#[test]
fn the_sum_in_memory_is_that_of_what_is_stored() {
    let folder = folder();
    let store = open(folder.path());
    let mut expected = BTreeMap::new();
    // Set, set again with other lengths, removed, set after a removal.
    for round in 0..60_usize {
        let key = format!("k{}", round % 7);
        match round % 5 {
            4 => {
                store.plugin_delete("p", &key).unwrap();
                expected.remove(&key);
            }
            _ => {
                let value = vec![0; round * 37 % 1000];
                set(&store, "p", &key, &value, None).unwrap();
                expected.insert(key, value.len());
            }
        }
        let known = store.plugin_usage().get("p").copied();
        let read = Usage::read(&store.connection(), "p").unwrap();
        assert!(
            known.is_none_or(|known| known == read),
            "{known:?} {read:?}"
        );
        let bytes: usize = expected.iter().map(|(key, value)| key.len() + value).sum();
        assert_eq!((read.keys, read.bytes), (expected.len(), bytes));
    }
    // A refused change changes nothing.
    let before = store.plugin_usage().get("p").copied();
    for index in 0..20 {
        let _ = set(&store, "q", &index.to_string(), &[0; MAX_VALUE], None);
    }
    assert_eq!(store.plugin_usage().get("p").copied(), before);
    let read = Usage::read(&store.connection(), "q").unwrap();
    assert_eq!(store.plugin_usage().get("q").copied(), Some(read));
    assert!(read.bytes <= MAX_TOTAL);
}

#[test]
fn concurrent_updates_are_all_stored() {
    let folder = folder();
    let store = open(folder.path());
    let number = |value: &Option<Vec<u8>>| {
        let text = value
            .as_ref()
            .map(|value| String::from_utf8(value.clone()).unwrap());
        text.map_or(0, |text| text.parse::<u32>().unwrap())
    };
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                for _ in 0..25 {
                    loop {
                        let before = store.plugin_get("p", "count").unwrap();
                        let after = (number(&before) + 1).to_string();
                        let is_set = compare_and_set(
                            &store,
                            "p",
                            "count",
                            before.as_deref(),
                            Some(after.as_bytes()),
                        );
                        if is_set.unwrap() {
                            break;
                        }
                    }
                }
            });
        }
    });
    assert_eq!(
        store.plugin_get("p", "count").unwrap(),
        Some(b"200".to_vec())
    );
}

#[test]
fn a_value_is_set_or_removed_only_in_place_of_the_expected_one() {
    let folder = folder();
    let store = open(folder.path());
    let change = |expected: Option<&[u8]>, value: Option<&[u8]>| {
        let is_set = compare_and_set(&store, "p", "k", expected, value);
        (is_set.unwrap(), store.plugin_get("p", "k").unwrap())
    };
    let one = Some(b"1".to_vec());
    assert_eq!(change(Some(b"1"), Some(b"2")), (false, None));
    assert_eq!(change(None, None), (true, None));
    assert_eq!(change(None, Some(b"1")), (true, one.clone()));
    assert_eq!(change(None, Some(b"2")), (false, one.clone()));
    assert_eq!(change(Some(b""), Some(b"2")), (false, one.clone()));
    assert_eq!(change(Some(b"2"), None), (false, one));
    assert_eq!(change(Some(b"1"), Some(b"")), (true, Some(Vec::new())));
    assert_eq!(change(Some(b""), None), (true, None));
    let large = vec![0; MAX_VALUE + 1];
    let refused = compare_and_set(&store, "p", "k", None, Some(&large));
    assert!(matches!(refused, Err(PluginDataError::TooLarge(_))));
    let read = Usage::read(&store.connection(), "p").unwrap();
    assert_eq!(store.plugin_usage().get("p").copied(), Some(read));
}

#[test]
fn expired_values_are_deleted_and_make_room() {
    let folder = folder();
    let store = open(folder.path());
    let value = vec![0; MAX_VALUE];
    let (over, ahead) = (Some(Duration::ZERO), Some(Duration::from_secs(3600)));
    // More than all that it may store, if they still existed.
    for index in 0..40 {
        set(&store, "p", &format!("old/{index}"), &value, over).unwrap();
    }
    set(&store, "p", "new/1", &value, ahead).unwrap();
    set(&store, "p", "new/2", &value, Some(Duration::MAX)).unwrap();
    assert_eq!(store.plugin_keys("p", "").unwrap(), ["new/1", "new/2"]);
    assert_eq!(store.plugin_get("p", "old/1").unwrap(), None);
    assert_eq!(store.plugin_get("p", "new/1").unwrap(), Some(value));
    let read = Usage::read(&store.connection(), "p").unwrap();
    assert_eq!(read.keys, 2);
    // It counts as missing, also if it replaced a value without a lifetime; and a value that is set
    // without one stays.
    set(&store, "p", "k", b"0", None).unwrap();
    set(&store, "p", "k", b"1", over).unwrap();
    assert_eq!(store.plugin_get("p", "k").unwrap(), None);
    assert_eq!(store.plugin_keys("p", "").unwrap(), ["new/1", "new/2"]);
    let is_set = compare_and_set(&store, "p", "k", None, Some(b"2"));
    assert!(is_set.unwrap());
    set(&store, "p", "other", b"", None).unwrap();
    assert_eq!(store.plugin_get("p", "k").unwrap(), Some(b"2".to_vec()));
}

#[test]
fn a_plugin_has_only_so_many_keys() {
    let folder = folder();
    let store = open(folder.path());
    store
        .write("fill", |work| {
            for index in 0..MAX_KEYS {
                work.execute(
                    "INSERT INTO plugin_data (plugin, key, value) VALUES ('p', ?1, x'')",
                    [index.to_string()],
                )
                .unwrap();
            }
            Ok(())
        })
        .unwrap();
    let refused = set(&store, "p", "new", b"", None).unwrap_err();
    assert_eq!(
        refused.to_string(),
        "there are 10000 keys, which is the limit"
    );
    set(&store, "p", "0", b"known", None).unwrap();
    set(&store, "other", "new", b"", None).unwrap();
}
