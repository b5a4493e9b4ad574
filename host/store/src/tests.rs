//! The store on real files: what it stores, which faults it tolerates, what it refuses.

mod damage;
mod durability;
mod full_disk;
mod plugin_data;
mod power_loss;

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

use model::compose::ApiKeys;
use model::{AppId, ServiceName};
use serde_json::json;

use super::*;

/// Waits if the folder is still in use: a program that another test is just starting has its lock until it runs.
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
fn a_device_takes_a_given_uuid_before_the_first_use_of_its_own() {
    let folder = folder();
    let mut store = open(folder.path());
    let given = "0123456789abcdef0123456789abcdef".parse().unwrap();
    store.adopt_device_uuid(&given).unwrap();
    assert_eq!(*store.device_uuid(), given);
    drop(store);
    let mut store = open(folder.path());
    assert_eq!(*store.device_uuid(), given);
    // Too late: another part of the program holds the store already.
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
    // Back to a former one.
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
fn only_the_owner_can_read_the_store() {
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
fn a_state_folder_of_somebody_else_is_refused_and_a_loose_one_tightened() {
    use std::os::unix::fs::{PermissionsExt, chown};
    let root = tempfile::tempdir().unwrap();
    let folder = root.path().join("state");
    std::fs::create_dir(&folder).unwrap();
    std::fs::set_permissions(&folder, std::fs::Permissions::from_mode(0o777)).unwrap();
    drop(Store::open(&folder).unwrap());
    let mode = std::fs::metadata(&folder).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o700);
    // Only root can change the owner of a folder.
    if chown(&folder, Some(65534), Some(65534)).is_ok() {
        let refused = Store::open(&folder).unwrap_err();
        let why = std::error::Error::source(&refused).unwrap().to_string();
        assert!(
            why.contains("belongs to the user 65534"),
            "{refused}: {why}"
        );
    }
}
