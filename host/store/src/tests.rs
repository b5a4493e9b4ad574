//! The store on real files: what it keeps, what it survives, what it refuses.

mod damage;
mod durability;
mod full_disk;
mod power_loss;

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

use model::compose::ApiKeys;
use model::{AppId, ServiceName};
use serde_json::json;

use super::*;

/// Waits where the folder is still in use: a program that another test is just starting has its lock until it runs.
fn open(folder: &Path) -> Store {
    let deadline = Instant::now() + Duration::from_secs(30);
    let opened = loop {
        match Store::open(folder) {
            Err(StoreError::InUse { .. }) if Instant::now() < deadline => std::thread::yield_now(),
            opened => break opened.unwrap(),
        }
    };
    assert_eq!(opened.set_aside, None);
    opened.store
}

fn folder() -> tempfile::TempDir {
    tempfile::tempdir().unwrap()
}

fn service(name: &str) -> ServiceName {
    name.parse().unwrap()
}

#[test]
fn a_device_takes_the_uuid_that_it_is_given_before_anybody_has_asked_for_it() {
    let folder = folder();
    let mut store = open(folder.path());
    let given = "0123456789abcdef0123456789abcdef".parse().unwrap();
    store.adopt_device_uuid(&given).unwrap();
    assert_eq!(*store.device_uuid(), given);
    drop(store);
    let mut store = open(folder.path());
    assert_eq!(*store.device_uuid(), given);
    // Too late: another part has it already.
    let other = store.clone();
    let late = "ffffffffffffffffffffffffffffffff".parse().unwrap();
    assert!(store.adopt_device_uuid(&late).is_err());
    assert_eq!(*other.device_uuid(), given);
    store.adopt_device_uuid(&given).unwrap();
}

#[test]
fn a_device_remembers_which_uuids_it_had() {
    let folder = folder();
    let mut store = open(folder.path());
    let first = store.device_uuid().clone();
    assert_eq!(store.former_uuids().unwrap(), []);
    let uuid = |number: usize| {
        format!("{number:032x}")
            .parse::<model::DeviceUuid>()
            .unwrap()
    };
    store.adopt_device_uuid(&uuid(1)).unwrap();
    store.adopt_device_uuid(&uuid(2)).unwrap();
    assert_eq!(store.former_uuids().unwrap(), [uuid(1), first.clone()]);
    // Back to one that it had.
    store.adopt_device_uuid(&first).unwrap();
    assert_eq!(store.former_uuids().unwrap(), [uuid(2), uuid(1)]);
    drop(store);
    let mut store = open(folder.path());
    for number in 3..20 {
        store.adopt_device_uuid(&uuid(number)).unwrap();
    }
    assert_eq!(store.former_uuids().unwrap().len(), 8);
    assert_eq!(store.former_uuids().unwrap()[0], uuid(18));
}

#[test]
fn a_device_keeps_its_uuid_and_its_keys() {
    let folder = folder();
    let store = open(folder.path());
    let uuid = store.device_uuid().clone();
    let global = store.global_key().unwrap();
    let web = store.service_key(AppId(12), &service("web")).unwrap();
    let key = ApiKeys::service_key(&store, AppId(12), &service("web")).unwrap();
    assert_eq!(key.reveal(), web.reveal());
    drop(store);

    let store = open(folder.path());
    assert_eq!(store.device_uuid(), &uuid);
    assert_eq!(store.global_key().unwrap().reveal(), global.reveal());
    assert_eq!(
        store
            .service_key(AppId(12), &service("web"))
            .unwrap()
            .reveal(),
        web.reveal()
    );
}

#[test]
fn keys_are_32_lower_case_hexadecimal_digits_and_all_different() {
    let folder = folder();
    let store = open(folder.path());
    let keys = [
        store.global_key().unwrap(),
        store.service_key(AppId(1), &service("a")).unwrap(),
        store.service_key(AppId(1), &service("b")).unwrap(),
        store.service_key(AppId(2), &service("a")).unwrap(),
        store.service_key(AppId(0), &service("a")).unwrap(),
    ];
    let mut texts: Vec<&str> = keys.iter().map(|key| key.reveal()).collect();
    for text in &texts {
        assert_eq!(text.len(), 32);
        assert!(text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f')));
    }
    texts.sort_unstable();
    texts.dedup();
    assert_eq!(texts.len(), keys.len());
}

#[test]
fn the_update_locks_of_services_are_kept_until_they_are_forgotten() {
    let folder = folder();
    let store = open(folder.path());
    let lock = |name: &str| LockRecord {
        app: AppId(7),
        service: service(name),
        token: format!("token of {name}"),
        reason: "writes flash; don't cut".into(),
        ttl: 60_000,
        taken_at: 1,
        expires_at: 60_001,
        boot: "boot".into(),
        expires_in_boot: 61_000,
        survives_reboot: true,
        is_placed: false,
    };
    for name in ["web", "db"] {
        store.put_lock(&lock(name)).unwrap();
    }
    let placed = LockRecord {
        is_placed: true,
        survives_reboot: false,
        ..lock("web")
    };
    store.put_lock(&placed).unwrap();
    drop(store);

    let store = open(folder.path());
    assert_eq!(store.lock_records().unwrap(), [lock("db"), placed]);
    for _ in 0..2 {
        store.forget_lock(AppId(7), &service("web")).unwrap();
    }
    assert_eq!(store.lock_records().unwrap(), [lock("db")]);
}

#[test]
fn definitions_are_kept_until_they_are_forgotten() {
    let folder = folder();
    let store = open(folder.path());
    let definition = |digest: &str, value: i32| Definition {
        subject: "service 1/web".into(),
        digest: digest.into(),
        value: json!({ "value": value }),
    };
    for (digest, value) in [("a", 1), ("b", 2), ("a", 3)] {
        store.put_definition(&definition(digest, value)).unwrap();
    }
    drop(store);
    let store = open(folder.path());
    let kept = store.definitions().unwrap();
    assert_eq!(kept, [definition("a", 3), definition("b", 2)]);
    let gone = |digest: &str| ("service 1/web".to_owned(), digest.to_owned());
    store.forget_definitions(&[gone("a"), gone("c")]).unwrap();
    assert_eq!(store.definitions().unwrap(), [definition("b", 2)]);
}

#[test]
fn a_key_is_known_by_its_owner_alone() {
    let folder = folder();
    let store = open(folder.path());
    let global = store.global_key().unwrap();
    let owner = KeyOwner::Service {
        app: AppId(12),
        service: service("web"),
    };
    let web = store.service_key(AppId(12), &service("web")).unwrap();
    assert_eq!(store.key_owner(global.reveal()), Some(KeyOwner::Global));
    assert_eq!(store.key_owner(web.reveal()), Some(owner.clone()));
    for wrong in [
        "",
        "x",
        &web.reveal()[..31],
        &format!("{}0", web.reveal()),
        &web.reveal()
            .to_uppercase()
            .replace(|c: char| c.is_ascii_digit(), "f"),
        &"0".repeat(32),
        &"x".repeat(1 << 20),
    ] {
        assert_eq!(store.key_owner(wrong), None, "{wrong:.40}");
    }

    let renewed = store.regenerate_key(&owner).unwrap();
    assert_eq!(
        store.key_owner(web.reveal()),
        None,
        "the old key opens nothing"
    );
    assert_eq!(store.key_owner(renewed.reveal()), Some(owner));
    assert_eq!(store.key_owner(global.reveal()), Some(KeyOwner::Global));
    let renewed_global = store.regenerate_key(&KeyOwner::Global).unwrap();
    drop(store);

    let store = open(folder.path());
    assert_eq!(store.key_owner(global.reveal()), None);
    assert_eq!(
        store.key_owner(renewed_global.reveal()),
        Some(KeyOwner::Global)
    );

    store
        .forget_service_key(AppId(12), &service("web"))
        .unwrap();
    store
        .forget_service_key(AppId(12), &service("web"))
        .unwrap();
    assert_eq!(store.key_owner(renewed.reveal()), None);
}

#[test]
fn the_key_can_be_read_while_a_supervisor_runs_and_after() {
    let folder = folder();
    let refused = read_global_key(folder.path()).unwrap_err();
    assert!(
        refused.to_string().starts_with("there is no state in `"),
        "{refused}"
    );
    let store = open(folder.path());
    let key = store.global_key().unwrap();
    assert_eq!(
        read_global_key(folder.path()).unwrap().reveal(),
        key.reveal()
    );
    let renewed = store.regenerate_key(&KeyOwner::Global).unwrap();
    assert_eq!(
        read_global_key(folder.path()).unwrap().reveal(),
        renewed.reveal()
    );
    drop(store);
    assert_eq!(
        read_global_key(folder.path()).unwrap().reveal(),
        renewed.reveal()
    );
    open(folder.path());
}

#[test]
fn a_second_supervisor_is_refused() {
    let folder = folder();
    let first = open(folder.path());
    let clone = first.clone();
    drop(first);
    let refused = Store::open(folder.path()).unwrap_err();
    assert!(
        matches!(refused, StoreError::InUse { pid: Some(pid), .. } if pid == std::process::id()),
        "{refused}"
    );
    drop(clone);
    open(folder.path());
}

#[test]
fn what_is_stored_is_for_its_owner_alone() {
    use std::os::unix::fs::PermissionsExt as _;
    let parent = folder();
    let folder = parent.path().join("state");
    let store = open(&folder);
    store.set_snapshot(&json!({})).unwrap();
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&folder), 0o700);
    for entry in std::fs::read_dir(&folder).unwrap() {
        let path = entry.unwrap().path();
        assert_eq!(mode(&path), 0o600, "{}", path.display());
    }
}

#[test]
fn target_states_are_kept_as_they_came() {
    let folder = folder();
    let store = open(folder.path());
    assert_eq!(store.target(TargetSource::Local).unwrap(), None);
    let state: serde_json::Value =
        serde_json::from_str(r#"{"z":1,"a":{"é\u0000":[1.5,null]}}"#).unwrap();
    store
        .set_target(TargetSource::Local, &json!({ "first": true }))
        .unwrap();
    store.set_target(TargetSource::Local, &state).unwrap();
    store.set_target(TargetSource::Cloud, &json!({})).unwrap();
    drop(store);

    let store = open(folder.path());
    let read = store.target(TargetSource::Local).unwrap().unwrap();
    assert_eq!(read.to_string(), state.to_string(), "the order of keys too");
    store.clear_target(TargetSource::Local).unwrap();
    store.clear_target(TargetSource::Local).unwrap();
    assert_eq!(store.target(TargetSource::Local).unwrap(), None);
    assert_eq!(store.target(TargetSource::Cloud).unwrap(), Some(json!({})));
}

#[test]
fn running_releases_are_kept_by_app() {
    let folder = folder();
    let store = open(folder.path());
    let (one, two) = ("1".parse().unwrap(), "2".parse().unwrap());
    store.set_commit(&one, &"a".parse().unwrap()).unwrap();
    store.set_commit(&one, &"b".parse().unwrap()).unwrap();
    store.set_commit(&two, &"c".parse().unwrap()).unwrap();
    store.forget_commit(&two).unwrap();
    assert_eq!(
        store.commits().unwrap(),
        BTreeMap::from([(one, "b".parse().unwrap())])
    );
}

#[test]
fn images_are_recorded_for_each_service() {
    let folder = folder();
    let store = open(folder.path());
    let record = |image: &str, service: &str, image_id| ImageRecord {
        image: image.parse().unwrap(),
        app: "12".parse().unwrap(),
        app_id: AppId(12),
        service: service.parse().unwrap(),
        image_id: model::ImageId(image_id),
    };
    for each in [
        record("b:1", "web", 1),
        record("a:1", "web", 2),
        record("a:1", "db", 3),
        record("a:1", "web", 4),
    ] {
        store.record_image(&each).unwrap();
    }
    assert_eq!(
        store.image_records().unwrap(),
        [
            record("a:1", "db", 3),
            record("a:1", "web", 4),
            record("b:1", "web", 1)
        ]
    );
    store.forget_image(&"a:1".parse().unwrap()).unwrap();
    assert_eq!(store.image_records().unwrap(), [record("b:1", "web", 1)]);
    let refused = store
        .record_image(&record("c:1", "web", u64::MAX))
        .unwrap_err();
    assert!(matches!(refused, StoreError::TooLarge { .. }), "{refused}");
}

#[test]
fn intents_come_back_in_their_order() {
    let folder = folder();
    let store = open(folder.path());
    for (kind, key, value) in [
        ("purge", "2", 1),
        ("restart", "1", 2),
        ("purge", "1", 3),
        ("purge", "2", 4),
    ] {
        store.put_intent(kind, key, &json!(value)).unwrap();
    }
    store.remove_intent("restart", "1").unwrap();
    store.remove_intent("restart", "1").unwrap();
    drop(store);
    let read: Vec<_> = open(folder.path())
        .intents()
        .unwrap()
        .into_iter()
        .map(|intent| (intent.kind, intent.key, intent.value))
        .collect();
    assert_eq!(
        read,
        [
            ("purge".into(), "2".into(), json!(4)),
            ("purge".into(), "1".into(), json!(3))
        ]
    );
}

#[test]
fn the_snapshot_is_kept_whole() {
    let folder = folder();
    let store = open(folder.path());
    assert_eq!(store.snapshot().unwrap(), None);
    store.set_snapshot(&json!({ "containers": ["a"] })).unwrap();
    store.set_snapshot(&json!({ "containers": ["b"] })).unwrap();
    assert_eq!(
        store.snapshot().unwrap(),
        Some(json!({ "containers": ["b"] }))
    );
    store.clear_snapshot().unwrap();
    assert_eq!(store.snapshot().unwrap(), None);
}

#[test]
fn plugins_have_spaces_of_their_own() {
    let folder = folder();
    let store = open(folder.path());
    store.plugin_set("one", "a", b"1", None).unwrap();
    store.plugin_set("two", "a", b"\0\xff", None).unwrap();
    store.plugin_set("one", "a", b"", None).unwrap();
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
fn a_plugins_keys_are_found_by_prefix() {
    let folder = folder();
    let store = open(folder.path());
    for key in ["b/2", "b/1", "a", "b", "c", "b%", "é", ""] {
        store.plugin_set("p", key, b"", None).unwrap();
    }
    store.plugin_set("other", "b/3", b"", None).unwrap();
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
    let refused = |key: &str, value: &[u8]| match store.plugin_set("p", key, value, None) {
        Err(PluginDataError::TooLarge(text)) => text,
        other => panic!("not refused: {other:?}"),
    };
    store
        .plugin_set("p", &"k".repeat(MAX_KEY), b"", None)
        .unwrap();
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
        store
            .plugin_set("p", &index.to_string(), &value, None)
            .unwrap();
    }
    store
        .plugin_set("p", "xx", &value[..MAX_VALUE - 32], None)
        .unwrap();
    assert!(refused("y", b"").contains("over the limit of 1048576"));
    store
        .plugin_set("p", "xx", &value[..MAX_VALUE - 33], None)
        .unwrap();
    store.plugin_set("p", "y", b"", None).unwrap();
    store.plugin_set("other", "y", &value, None).unwrap();
    assert_eq!(store.plugin_get("p", "y").unwrap(), Some(Vec::new()));
}

#[test]
fn m12_the_sum_in_memory_is_that_of_what_is_stored() {
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
                store.plugin_set("p", &key, &value, None).unwrap();
                expected.insert(key, value.len());
            }
        }
        let known = store.plugin_usage().get("p").copied();
        let read = plugin_data::Usage::read(&store.connection(), "p").unwrap();
        assert!(
            known.is_none_or(|known| known == read),
            "{known:?} {read:?}"
        );
        let bytes: usize = expected.iter().map(|(key, value)| key.len() + value).sum();
        assert_eq!((read.keys, read.bytes), (expected.len(), bytes));
    }
    // One that was refused changes nothing.
    let before = store.plugin_usage().get("p").copied();
    for index in 0..20 {
        let _ = store.plugin_set("q", &index.to_string(), &[0; MAX_VALUE], None);
    }
    assert_eq!(store.plugin_usage().get("p").copied(), before);
    let read = plugin_data::Usage::read(&store.connection(), "q").unwrap();
    assert_eq!(store.plugin_usage().get("q").copied(), Some(read));
    assert!(read.bytes <= MAX_TOTAL);
}

#[test]
fn bug6_of_many_updates_at_once_none_is_lost() {
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
                        let is_set = store.plugin_compare_and_set(
                            "p",
                            "count",
                            before.as_deref(),
                            Some(after.as_bytes()),
                            None,
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
fn bug6_a_value_is_set_or_removed_only_in_place_of_the_expected_one() {
    let folder = folder();
    let store = open(folder.path());
    let change = |expected: Option<&[u8]>, value: Option<&[u8]>| {
        let is_set = store.plugin_compare_and_set("p", "k", expected, value, None);
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
    let refused = store.plugin_compare_and_set("p", "k", None, Some(&large), None);
    assert!(matches!(refused, Err(PluginDataError::TooLarge(_))));
    let read = plugin_data::Usage::read(&store.connection(), "p").unwrap();
    assert_eq!(store.plugin_usage().get("p").copied(), Some(read));
}

#[test]
fn bug6_what_has_outlived_its_time_is_gone_and_makes_room() {
    let folder = folder();
    let store = open(folder.path());
    let value = vec![0; MAX_VALUE];
    let (over, ahead) = (Some(Duration::ZERO), Some(Duration::from_secs(3600)));
    // More than all that it may store, if they were there.
    for index in 0..40 {
        store
            .plugin_set("p", &format!("old/{index}"), &value, over)
            .unwrap();
    }
    store.plugin_set("p", "new/1", &value, ahead).unwrap();
    store
        .plugin_set("p", "new/2", &value, Some(Duration::MAX))
        .unwrap();
    assert_eq!(store.plugin_keys("p", "").unwrap(), ["new/1", "new/2"]);
    assert_eq!(store.plugin_get("p", "old/1").unwrap(), None);
    assert_eq!(store.plugin_get("p", "new/1").unwrap(), Some(value));
    let read = plugin_data::Usage::read(&store.connection(), "p").unwrap();
    assert_eq!(read.keys, 2);
    // It counts as not there, and what is set without a lifetime stays.
    store.plugin_set("p", "k", b"1", over).unwrap();
    let is_set = store.plugin_compare_and_set("p", "k", None, Some(b"2"), None);
    assert!(is_set.unwrap());
    store.plugin_set("p", "other", b"", None).unwrap();
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
    let refused = store.plugin_set("p", "new", b"", None).unwrap_err();
    assert_eq!(
        refused.to_string(),
        "there are 10000 keys, which is the limit"
    );
    store.plugin_set("p", "0", b"known", None).unwrap();
    store.plugin_set("other", "new", b"", None).unwrap();
}

#[test]
fn many_threads_share_one_store() {
    let folder = folder();
    let store = open(folder.path());
    let name = service("web");
    let keys: Vec<String> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..8)
            .map(|index| {
                let (store, name) = (store.clone(), name.clone());
                scope.spawn(move || {
                    store
                        .put_intent("k", &index.to_string(), &json!(index))
                        .unwrap();
                    store
                        .service_key(AppId(1), &name)
                        .unwrap()
                        .reveal()
                        .to_owned()
                })
            })
            .collect();
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap())
            .collect()
    });
    assert_eq!(store.intents().unwrap().len(), 8);
    assert!(
        keys.iter().all(|key| *key == keys[0]),
        "all got the one key that was made"
    );
}

#[test]
fn h2_a_state_folder_of_somebody_else_is_refused_and_a_loose_one_tightened() {
    use std::os::unix::fs::{PermissionsExt, chown};
    let root = tempfile::tempdir().unwrap();
    let folder = root.path().join("state");
    std::fs::create_dir(&folder).unwrap();
    std::fs::set_permissions(&folder, std::fs::Permissions::from_mode(0o777)).unwrap();
    drop(Store::open(&folder).unwrap());
    let mode = std::fs::metadata(&folder).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o700);
    // Nobody else can give a folder away.
    if chown(&folder, Some(65534), Some(65534)).is_ok() {
        let refused = Store::open(&folder).unwrap_err();
        let why = std::error::Error::source(&refused).unwrap().to_string();
        assert!(
            why.contains("belongs to the user 65534"),
            "{refused}: {why}"
        );
    }
}
