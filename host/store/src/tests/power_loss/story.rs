//! The writes in the life of a store, one of each kind.

use super::super::*;

pub(super) type Step = Box<dyn Fn(&mut Store)>;

const APP: AppId = AppId(7);

fn step(run: impl Fn(&mut Store) + 'static) -> Step {
    Box::new(run)
}

/// Each step completes once its data must be on the disk.
pub(super) fn steps() -> Vec<Step> {
    let all = [
        // So that the log is merged into the file frequently, and not only after four megabytes.
        vec![step(|store| {
            let connection = store.connection();
            connection
                .pragma_update(None, "wal_autocheckpoint", 10)
                .unwrap();
        })],
        target_steps(),
        reconciler_steps(),
        plugin_and_service_steps(),
        device_steps(),
    ];
    all.into_iter().flatten().collect()
}

fn target_steps() -> Vec<Step> {
    let long = |fill: &str| json!({ "local": { "apps": fill.repeat(20_000) } });
    let set = move |source, state: serde_json::Value| {
        step(move |store| store.set_target(source, &state).unwrap())
    };
    let commit = |commit: &'static str| {
        step(move |store| {
            let app = "app".parse().unwrap();
            store.set_commit(&app, &commit.parse().unwrap()).unwrap();
        })
    };
    vec![
        set(TargetSource::Local, json!({ "a": 1 })),
        set(TargetSource::Cloud, long("x")),
        set(TargetSource::Cloud, long("y")),
        step(|store| store.clear_target(TargetSource::Local).unwrap()),
        commit("c1"),
        commit("c2"),
        step(|store| store.forget_commit(&"app".parse().unwrap()).unwrap()),
    ]
}

fn reconciler_steps() -> Vec<Step> {
    let image = |reference: &'static str, id| {
        step(move |store| {
            let record = ImageRecord {
                image: reference.parse().unwrap(),
                app: "app".parse().unwrap(),
                app_id: APP,
                service: service("web"),
                image_id: model::ImageId(id),
            };
            store.record_image(&record).unwrap();
        })
    };
    let intent = |kind: &'static str, value: i32| {
        step(move |store| store.put_intent(kind, "7", &json!(value)).unwrap())
    };
    let definition = |digest: &'static str| {
        step(move |store| {
            let definition = Definition {
                subject: "service 7/web".into(),
                digest: digest.into(),
                value: json!({ "of": digest }),
            };
            store.put_definition(&definition).unwrap();
        })
    };
    vec![
        image("a:1", 1),
        image("a:1", 2),
        image("b:1", 3),
        step(|store| store.forget_image(&"a:1".parse().unwrap()).unwrap()),
        intent("purge", 1),
        intent("stopped", 2),
        intent("purge", 3),
        step(|store| store.remove_intent("purge", "7").unwrap()),
        definition("a"),
        definition("b"),
        step(|store| {
            let gone = ["a", "b"].map(|digest| ("service 7/web".into(), digest.into()));
            store.forget_definitions(&gone).unwrap();
        }),
    ]
}

fn plugin_and_service_steps() -> Vec<Step> {
    let lock = |name: &'static str, ttl| {
        step(move |store| {
            let record = LockRecord {
                app: APP,
                service: service(name),
                token: format!("token of {name}"),
                reason: "writes flash".into(),
                ttl,
                taken_at: 1,
                expires_at: 60_001,
                boot: "boot".into(),
                expires_in_boot: 61_000,
                survives_reboot: true,
                is_placed: false,
            };
            store.put_lock(&record).unwrap();
        })
    };
    let owner = || KeyOwner::Service {
        app: APP,
        service: service("web"),
    };
    let set = |plugin: &'static str, key: &'static str, value: Vec<u8>| {
        step(move |store| {
            let change = ValueChange::set(&value);
            assert!(store.plugin_change(plugin, key, &change).unwrap());
        })
    };
    vec![
        set("one", "key", vec![1; 30_000]),
        set("one", "other", vec![2; 100]),
        step(|store| store.plugin_delete("one", "key").unwrap()),
        lock("web", 1),
        lock("db", 1),
        lock("web", 2),
        step(|store| store.forget_lock(APP, &service("web")).unwrap()),
        step(|store| drop(store.service_key(APP, &service("web")).unwrap())),
        step(move |store| drop(store.regenerate_key(&owner()).unwrap())),
        step(|store| drop(store.regenerate_key(&KeyOwner::Global).unwrap())),
        step(|store| store.forget_service_key(APP, &service("web")).unwrap()),
    ]
}

fn device_steps() -> Vec<Step> {
    let positions = |lines| {
        step(move |store| {
            let position = LogPosition {
                timestamp_ms: 5,
                lines,
            };
            let positions = [("c1".parse().unwrap(), position)].into();
            store.set_log_positions(&positions).unwrap();
        })
    };
    vec![
        step(|store| store.set_snapshot(&json!({ "c": [1] })).unwrap()),
        step(|store| store.clear_snapshot().unwrap()),
        positions(1),
        positions(2),
        step(|store| {
            let uuid = "0123456789abcdef0123456789abcdef".parse().unwrap();
            store.adopt_device_uuid(&uuid).unwrap();
        }),
    ]
}
