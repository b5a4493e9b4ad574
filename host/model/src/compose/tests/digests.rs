//! The digest shows whether a container is still up to date: it changes with every compared field,
//! and with nothing else.

use proptest::prelude::*;

use super::*;

fn digest(fields: &Value) -> String {
    web(fields).digest
}

/// Two values for each compared field; both differ from the default and from each other.
fn compared() -> Vec<(&'static str, Value, Value)> {
    vec![
        ("image", json!("web:2"), json!("web:3")),
        ("command", json!("a b"), json!("b a")),
        ("entrypoint", json!(["a", "b"]), json!(["b", "a"])),
        ("environment", json!({ "A": "1" }), json!({ "A": "2" })),
        ("labels", json!({ "a": "1" }), json!({ "a": "2" })),
        ("restart", json!("no"), json!("on-failure")),
        ("network_mode", json!("host"), json!("none")),
        (
            "networks",
            json!(["a"]),
            json!({ "a": { "aliases": ["x"] } }),
        ),
        ("ports", json!(["80:80"]), json!(["81:80"])),
        ("volumes", json!(["a:/a"]), json!(["a:/a:ro"])),
        ("tmpfs", json!("/a"), json!("/a:size=1m")),
        ("devices", json!(["/dev/a"]), json!(["/dev/a:/dev/b"])),
        (
            "healthcheck",
            json!({ "test": "a" }),
            json!({ "test": "a", "retries": 2 }),
        ),
        ("mem_limit", json!("1m"), json!("2m")),
        ("mem_reservation", json!("1m"), json!("2m")),
        ("shm_size", json!("1m"), json!("2m")),
        ("stop_grace_period", json!("1s"), json!("2s")),
        ("stop_signal", json!("SIGINT"), json!("SIGHUP")),
        (
            "ulimits",
            json!({ "nproc": 1 }),
            json!({ "nproc": { "soft": 1, "hard": 2 } }),
        ),
        ("sysctls", json!({ "a": "1" }), json!({ "a": "2" })),
        (
            "dns",
            json!(["1.1.1.1", "8.8.8.8"]),
            json!(["8.8.8.8", "1.1.1.1"]),
        ),
        ("dns_search", json!(["a", "b"]), json!(["b", "a"])),
        ("dns_opt", json!(["a"]), json!(["b"])),
        ("cap_add", json!(["A"]), json!(["B"])),
        ("cap_drop", json!(["A"]), json!(["B"])),
        ("extra_hosts", json!(["a=1.1.1.1"]), json!(["a=1.1.1.2"])),
        ("group_add", json!([1]), json!([2])),
        ("security_opt", json!(["a"]), json!(["b"])),
        ("cpu_shares", json!(1), json!(2)),
        ("cpu_quota", json!(1), json!(2)),
        ("oom_score_adj", json!(1), json!(2)),
        ("cpuset", json!("0"), json!("1")),
        ("domainname", json!("a"), json!("b")),
        ("hostname", json!("a"), json!("b")),
        (
            "mac_address",
            json!("02:00:00:00:00:01"),
            json!("02:00:00:00:00:02"),
        ),
        ("pid", json!("host"), json!("private")),
        ("userns_mode", json!("host"), json!("private")),
        ("cgroup_parent", json!("a"), json!("b")),
        ("user", json!("a"), json!("b")),
        ("working_dir", json!("/a"), json!("/b")),
        ("ipc", json!("host"), json!("private")),
        ("pids_limit", json!(1), json!(2)),
        ("init", json!(true), json!(false)),
    ]
}

const FLAGS: [&str; 4] = ["privileged", "read_only", "oom_kill_disable", "tty"];

#[test]
fn every_field_of_a_configuration_is_tried() {
    let tried: Vec<&str> = compared()
        .iter()
        .map(|(field, ..)| if *field == "volumes" { "mounts" } else { field })
        .chain(FLAGS)
        .collect();
    // A field that is left out of the serialized form while it has its default is missing here, so this test does not
    // notice if its row is missing.
    let config = serde_json::to_value(config(&json!({}))).unwrap();
    for field in config.as_object().unwrap().keys() {
        assert!(
            tried.contains(&field.as_str()),
            "`{field}` is missing in the table above"
        );
    }
}

#[test]
fn changing_any_compared_field_changes_the_digest() {
    let plain = digest(&json!({}));
    for (field, one, other) in compared() {
        let one = digest(&json!({ field: one }));
        let other = digest(&json!({ field: other }));
        assert_ne!(one, plain, "{field}");
        assert_ne!(other, plain, "{field}");
        assert_ne!(one, other, "{field}");
    }
    for flag in FLAGS {
        assert_ne!(digest(&json!({ flag: flag != "tty" })), plain, "{flag}");
    }
}

#[test]
fn the_digest_is_the_one_that_devices_have_stored() {
    // A different value here means that an upgrade of the supervisor recreates every container of
    // every device. New fields are left out of the serialized form while they have their default.
    expect_test::expect!["7392b0b8d3b9b6b360ddc3540653eeeef48f8153ad356027e9e62b55eb76e3ae"]
        .assert_eq(&digest(&json!({ "command": "run" })));
}

#[test]
fn a_digest_that_the_user_wrote_has_no_meaning() {
    let with = |value: &str| web(&json!({ "labels": { "io.platform.config-digest": value } }));
    assert_eq!(with("x").digest, digest(&json!({})));
    assert_eq!(
        with("x").config.labels["io.platform.config-digest"],
        with("y").digest
    );
}

#[test]
fn values_that_a_rename_preserves_are_not_compared() {
    let mut target = release(
        &json!({ "web": { "labels": { "io.platform.features.supervisor-api": "1" } } }),
        &json!({}),
        &json!({}),
    );
    let first = resolve(&target, &facts(), &Keys).unwrap();
    let release = target
        .apps
        .values_mut()
        .next()
        .unwrap()
        .release
        .as_mut()
        .unwrap();
    release.commit = "decaf".parse().unwrap();
    release.id.0 += 1;
    release
        .services
        .values_mut()
        .for_each(|service| service.image_id.0 += 1);
    let mut facts = facts();
    facts.name = "renamed".into();
    let second = resolve(&target, &facts, &Keys).unwrap();
    let service = |resolved: &ResolvedTarget| {
        resolved
            .desired
            .apps
            .values()
            .next()
            .unwrap()
            .services
            .values()
            .next()
            .unwrap()
            .clone()
    };
    assert_eq!(service(&first).digest, service(&second).digest);
    assert_ne!(
        service(&first).container_name(),
        service(&second).container_name()
    );
    assert_ne!(
        service(&first).init_environment,
        service(&second).init_environment
    );
}

#[test]
fn one_image_by_digest_under_two_names_is_the_same() {
    let by_digest =
        |name: &str, digits: &str| digest(&json!({ "image": format!("{name}@sha256:{digits}") }));
    assert_eq!(
        by_digest("r.io/v2/aaa", "12"),
        by_digest("r.io/v2/bbb", "12")
    );
    assert_ne!(
        by_digest("r.io/v2/aaa", "12"),
        by_digest("r.io/v2/aaa", "34")
    );
}

#[test]
fn the_supervisors_own_labels_do_not_cause_a_new_volume_or_network() {
    let target = release(&json!({}), &json!({ "data": {} }), &json!({ "back": {} }));
    let first = resolve(&target, &facts(), &Keys).unwrap();
    let mut facts = facts();
    facts.uuid = "f".repeat(32).parse().unwrap();
    let second = resolve(&target, &facts, &Keys).unwrap();
    let app = |resolved: &ResolvedTarget| resolved.desired.apps.values().next().unwrap().clone();
    assert_ne!(
        app(&first).volumes["data"].config,
        app(&second).volumes["data"].config
    );
    assert_eq!(
        app(&first).volumes["data"].digest,
        app(&second).volumes["data"].digest
    );
    assert_eq!(
        app(&first).networks["back"].digest,
        app(&second).networks["back"].digest
    );

    let labelled = release(
        &json!({}),
        &json!({ "data": { "labels": { "mine": "1" } } }),
        &json!({ "back": { "internal": true } }),
    );
    let third = resolve(&labelled, &facts, &Keys).unwrap();
    assert_ne!(
        app(&first).volumes["data"].digest,
        app(&third).volumes["data"].digest
    );
    assert_ne!(
        app(&first).networks["back"].digest,
        app(&third).networks["back"].digest
    );
}

/// Lists whose order has no meaning.
const SETS: [(&str, &[&str]); 9] = [
    (
        "ports",
        &["80:80", "81-82:81-82", "90/udp", "127.0.0.1:443:443"],
    ),
    ("volumes", &["a:/a", "b:/b:ro", "/c"]),
    ("tmpfs", &["/x", "/y:size=1m", "/z"]),
    ("devices", &["/dev/a", "/dev/b:/dev/c", "/dev/d:r"]),
    ("cap_add", &["NET_ADMIN", "SYS_TIME", "SYS_NICE"]),
    ("extra_hosts", &["a=1.1.1.1", "b=1.1.1.2", "c:1.1.1.3"]),
    ("group_add", &["audio", "video", "7"]),
    (
        "security_opt",
        &["no-new-privileges", "apparmor=unconfined"],
    ),
    ("environment", &["A=1", "B=2", "C=3"]),
];

fn shuffled() -> impl Strategy<Value = (Value, Value)> {
    let lists: Vec<_> = SETS
        .iter()
        .map(|(field, items)| {
            let items: Vec<String> = items.iter().map(|item| (*item).to_owned()).collect();
            (
                Just(*field),
                proptest::sample::subsequence(items.clone(), 0..=items.len()),
                any::<u64>(),
            )
                .prop_flat_map(|(field, items, _)| {
                    (Just(field), Just(items.clone()), Just(items).prop_shuffle())
                })
        })
        .collect();
    lists.prop_map(|lists| {
        let mut one = Map::new();
        let mut other = Map::new();
        for (field, ordered, shuffled) in lists {
            one.insert(field.to_owned(), json!(ordered));
            // Fields in another order, too.
            other.shift_insert(0, field.to_owned(), json!(shuffled));
        }
        (one.into(), other.into())
    })
}

/// The service with these fields in its composition, which may have a list of variables.
fn composed(fields: &Value) -> DesiredService {
    let mut target = release(&json!({ "web": {} }), &json!({}), &json!({}));
    let app = target.apps.values_mut().next().unwrap();
    let service = app
        .release
        .as_mut()
        .unwrap()
        .services
        .values_mut()
        .next()
        .unwrap();
    service.composition = fields.as_object().unwrap().clone();
    let resolved = resolve(&target, &facts(), &Keys).unwrap();
    assert_eq!(resolved.problems(), None, "{fields}");
    resolved
        .desired
        .apps
        .into_values()
        .next()
        .unwrap()
        .services
        .into_values()
        .next()
        .unwrap()
}

proptest! {
    #[test]
    fn shuffling_what_has_no_order_keeps_the_digest((one, other) in shuffled()) {
        let (one, again, other) = (composed(&one), composed(&one), composed(&other));
        prop_assert_eq!(&one, &again, "resolving is deterministic");
        prop_assert_eq!(one.digest, other.digest);
        prop_assert_eq!(one.config, other.config);
    }

    #[test]
    fn any_two_compared_fields_together_are_seen(pick in proptest::sample::subsequence(compared(), 2), swap: bool) {
        let [(first, one, _), (second, two, other)] = &pick[..] else { unreachable!("two were asked for") };
        let fields = json!({ *first: one, *second: two });
        let changed = json!({ *first: one, *second: if swap { other } else { &Value::Null } });
        // An image or environment cannot be null, and these modes leave no networks to differ in.
        prop_assume!(swap || !["image", "environment", "labels"].contains(second));
        prop_assume!(!(*first == "network_mode" && *second == "networks"));
        prop_assert_ne!(digest(&fields), digest(&changed));
    }
}

/// What the reconciler stores about the objects that it creates, including what the digest leaves
/// out.
#[test]
fn the_stored_definition_of_a_service_is_read_back_unchanged() {
    for (field, value, _) in compared() {
        let service = composed(&json!({ field: value, "cpus": 1.5 }));
        assert!(service.config.nano_cpus > 0);
        let written = serde_json::to_string(&service).unwrap();
        let read: DesiredService = serde_json::from_str(&written).unwrap();
        assert_eq!(read, service, "{field}");
    }
}
