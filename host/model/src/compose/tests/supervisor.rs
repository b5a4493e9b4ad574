//! The supervisor's additions to a service: variables, labels, access to its API.

use std::collections::BTreeMap;

use super::*;
use crate::compose::{CloudAccess, HostFacts};
use crate::{Mount, NetworkAttachment, NetworkMode, UpdateStrategy};

const API: &str = "io.platform.features.supervisor-api";

fn with_api(mut fields: Value) -> DesiredService {
    fields["labels"] = json!({ API: "true" });
    web(&fields)
}

#[test]
fn every_service_receives_variables_that_say_where_it_runs() {
    assert_eq!(
        config(&json!({})).environment,
        [
            ("PLATFORM", "1"),
            ("PLATFORM_APP_LOCK_PATH", "/tmp/platform/updates.lock"),
            ("PLATFORM_APP_NAME", "shop"),
            ("PLATFORM_APP_UUID", "12"),
            ("PLATFORM_DEVICE_ARCH", "amd64"),
            ("PLATFORM_DEVICE_TYPE", "generic-amd64"),
            ("PLATFORM_DEVICE_UUID", "0123456789abcdef0123456789abcdef"),
            ("PLATFORM_HOST_OS_VERSION", "Debian GNU/Linux 12"),
            (
                "PLATFORM_SERVICE_HANDOVER_COMPLETE_PATH",
                "/tmp/platform/handover-complete"
            ),
            ("PLATFORM_SERVICE_NAME", "web"),
            ("USER", "root"),
        ]
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .into()
    );
}

#[test]
fn the_users_variables_win_over_defaults() {
    let given = json!({ "environment": { "USER": "me", "PLATFORM_APP_NAME": "mine" } });
    let environment = config(&given).environment;
    assert_eq!(
        (
            environment["USER"].as_str(),
            environment["PLATFORM_APP_NAME"].as_str()
        ),
        ("me", "mine")
    );
}

#[test]
fn the_services_variables_and_labels_win_over_the_compositions() {
    let mut target = release(
        &json!({ "web": { "environment": { "A": "service" }, "labels": { "l": "service" } } }),
        &json!({}),
        &json!({}),
    );
    let app = target.apps.values_mut().next().unwrap();
    let service = app
        .release
        .as_mut()
        .unwrap()
        .services
        .values_mut()
        .next()
        .unwrap();
    for (environment, labels) in [
        (
            json!({ "A": "composition", "B": 1, "C": null }),
            json!({ "l": "composition", "m": true }),
        ),
        (
            json!(["A=composition", "B=1", "C", "=x"]),
            json!(["l=composition", "m=true"]),
        ),
    ] {
        let service = {
            service
                .composition
                .insert("environment".into(), environment);
            service.composition.insert("labels".into(), labels);
            service.clone()
        };
        let mut target = release(&json!({ "web": {} }), &json!({}), &json!({}));
        let app = target.apps.values_mut().next().unwrap();
        app.release
            .as_mut()
            .unwrap()
            .services
            .insert(service.name.clone(), service);
        let resolved = resolve(&target, &facts(), &Keys).unwrap();
        let config = &resolved
            .desired
            .apps
            .values()
            .next()
            .unwrap()
            .services
            .values()
            .next()
            .unwrap()
            .config;
        let read = ["A", "B", "C"].map(|name| config.environment[name].as_str());
        assert_eq!(read, ["service", "1", ""]);
        assert!(!config.environment.contains_key(""));
        assert_eq!(
            (config.labels["l"].as_str(), config.labels["m"].as_str()),
            ("service", "true")
        );
    }
}

#[test]
fn forced_labels_cannot_be_overridden() {
    let labels = config(&json!({ "labels": {
        "io.platform.app-id": "99", "io.platform.stop-grace-period": "0", "io.platform.supervised": "false", "io.platform.config-digest": "x", "mine": "y",
    } }))
    .labels;
    let digest = labels["io.platform.config-digest"].clone();
    assert_eq!(digest.len(), 64);
    assert_eq!(
        labels,
        BTreeMap::from(
            [
                ("io.platform.app-id", "12"),
                ("io.platform.app-uuid", "12"),
                ("io.platform.config-digest", digest.as_str()),
                (
                    "io.platform.device-uuid",
                    "0123456789abcdef0123456789abcdef"
                ),
                ("io.platform.service-id", "1"),
                ("io.platform.service-name", "web"),
                ("io.platform.stop-grace-period", "10"),
                ("io.platform.supervised", "true"),
                ("mine", "y"),
            ]
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
        )
    );
}

#[test]
fn only_services_with_the_label_receive_the_api_address() {
    let without = web(&json!({}));
    let with = with_api(json!({}));
    let added: BTreeMap<_, _> = with
        .config
        .environment
        .iter()
        .filter(|(name, _)| !without.config.environment.contains_key(*name))
        .map(|(name, value)| (name.as_str(), value.as_str()))
        .collect();
    assert_eq!(
        added,
        BTreeMap::from([
            ("PLATFORM_APP_ID", "12"),
            ("PLATFORM_SUPERVISOR_ADDRESS", "http://10.114.104.1:48484"),
            ("PLATFORM_SUPERVISOR_API_KEY", "key-of-12-web"),
            ("PLATFORM_SUPERVISOR_HOST", "10.114.104.1"),
            ("PLATFORM_SUPERVISOR_PORT", "48484"),
        ])
    );
    assert!(without.init_environment.is_empty());
    assert_eq!(
        with.init_environment,
        BTreeMap::from([(
            "PLATFORM_DEVICE_NAME_AT_INIT".to_owned(),
            "bench".to_owned()
        )])
    );
    assert_eq!(
        with.config.networks["supervisor0"],
        NetworkAttachment::default()
    );
    assert!(!without.config.networks.contains_key("supervisor0"));
}

#[test]
fn the_api_is_where_the_service_can_reach_it() {
    for (fields, host, joins) in [
        (json!({}), "10.114.104.1", true),
        (json!({ "network_mode": "bridge" }), "10.114.104.1", true),
        (json!({ "network_mode": "host" }), "127.0.0.1", false),
        (json!({ "image": "file:/srv/web.wasm" }), "127.0.0.1", false),
    ] {
        let config = with_api(fields.clone()).config;
        assert_eq!(
            config.environment["PLATFORM_SUPERVISOR_HOST"], host,
            "{fields}"
        );
        assert_eq!(
            config.environment["PLATFORM_SUPERVISOR_ADDRESS"],
            format!("http://{host}:48484")
        );
        assert_eq!(
            config.networks.contains_key("supervisor0"),
            joins,
            "{fields}"
        );
    }
    let none = with_api(json!({ "network_mode": "none" })).config;
    assert_eq!(
        (none.network_mode, none.networks),
        (NetworkMode::None, BTreeMap::new())
    );
    assert_eq!(
        warnings(&json!({ "network_mode": "none", "labels": { API: "1" } })),
        [
            "service `web`: with `network_mode` `none` it cannot reach the supervisor's API, which its label requests"
        ]
    );
}

#[test]
fn the_apis_variables_cannot_be_overridden_but_the_apps_id_can() {
    let service = web(&json!({
        "labels": { API: "1" },
        "environment": { "PLATFORM_SUPERVISOR_API_KEY": "mine", "PLATFORM_APP_ID": "5", "PLATFORM_DEVICE_NAME_AT_INIT": "mine" },
    }));
    assert_eq!(
        service.config.environment["PLATFORM_SUPERVISOR_API_KEY"],
        "key-of-12-web"
    );
    assert_eq!(service.config.environment["PLATFORM_APP_ID"], "5");
    assert_eq!(
        service.config.environment["PLATFORM_DEVICE_NAME_AT_INIT"],
        "mine"
    );
    assert!(service.init_environment.is_empty());
}

#[test]
fn nobody_joins_the_apis_network_without_the_label() {
    for fields in [
        json!({ "networks": ["supervisor0"] }),
        json!({ "networks": { "supervisor0": { "ipv4_address": "10.114.104.9" } } }),
        json!({ "network_mode": "supervisor0" }),
    ] {
        let config = config(&fields);
        assert_eq!(
            config.network_mode,
            NetworkMode::Network("12_default".into())
        );
        assert_eq!(
            config.networks.into_keys().collect::<Vec<_>>(),
            ["12_default"]
        );
        assert_eq!(
            warnings(&fields),
            [
                "service `web`: `networks` names `supervisor0`, which needs the label `io.platform.features.supervisor-api`: it was ignored"
            ]
        );
        let with = with_api(fields).config;
        assert_eq!(
            with.networks.into_keys().collect::<Vec<_>>(),
            ["12_default", "supervisor0"]
        );
    }
}

#[test]
fn features_that_are_not_there_are_warned_of() {
    assert_eq!(
        warnings(&json!({ "labels": {
            "io.platform.features.teleport": "1", "io.platform.features.optional": "1", "io.platform.features.gpu": "0",
        } })),
        ["service `web`: `labels.io.platform.features.teleport` is not supported and was ignored"]
    );
}

/// The additions of a feature to a service that requests nothing else.
fn added(label: &str, host: HostFacts) -> (Vec<Mount>, BTreeMap<String, String>, Vec<String>) {
    let facts = DeviceFacts {
        host_root: "/scratch/".into(),
        host,
        ..facts()
    };
    let of = |labels: Value| {
        let target = release(
            &json!({ "web": { "labels": labels } }),
            &json!({}),
            &json!({}),
        );
        let resolved = resolve(&target, &facts, &Keys).unwrap();
        let app = resolved.desired.apps.values().next().unwrap();
        let config = app.services.values().next().unwrap().config.clone();
        (config, resolved.warnings)
    };
    let (plain, _) = of(json!({}));
    let (with, warnings) = of(json!({ format!("io.platform.features.{label}"): "true" }));
    let mounts = with
        .mounts
        .into_iter()
        .filter(|mount| !plain.mounts.contains(mount));
    let variables = with.environment.into_iter();
    let variables = variables.filter(|(name, value)| plain.environment.get(name) != Some(value));
    (mounts.collect(), variables.collect(), warnings)
}

fn bind(source: &str, target: &str, read_only: bool) -> Mount {
    Mount::Bind {
        source: source.into(),
        target: target.into(),
        read_only,
    }
}

#[test]
fn features_open_folders_of_the_host() {
    let host = HostFacts {
        has_kernel_modules: true,
        has_firmware: true,
        ..HostFacts::default()
    };
    for (label, mounts) in [
        (
            "dbus",
            vec![bind("/scratch/run/dbus", "/host/run/dbus", false)],
        ),
        (
            "journal-logs",
            vec![
                bind("/scratch/etc/machine-id", "/etc/machine-id", true),
                bind("/scratch/run/log/journal", "/run/log/journal", true),
                bind("/scratch/var/log/journal", "/var/log/journal", true),
            ],
        ),
        (
            "kernel-modules",
            vec![bind("/scratch/lib/modules", "/lib/modules", false)],
        ),
        (
            "firmware",
            vec![bind("/scratch/lib/firmware", "/lib/firmware", false)],
        ),
        ("sysfs", vec![bind("/scratch/sys", "/sys", false)]),
        ("procfs", vec![bind("/scratch/proc", "/proc", false)]),
        (
            "extra-firmware",
            vec![Mount::Volume {
                source: "extra-firmware".into(),
                target: "/extra-firmware".into(),
                read_only: false,
            }],
        ),
    ] {
        let expected = (mounts, BTreeMap::new(), Vec::<String>::new());
        assert_eq!(added(label, host.clone()), expected, "{label}");
    }
    // On a host without them, the label has no effect.
    for label in ["kernel-modules", "firmware"] {
        assert_eq!(added(label, HostFacts::default()).0, [], "{label}");
    }
}

#[test]
fn features_give_the_engines_socket_the_cloud_and_the_board() {
    let host = HostFacts {
        engine_socket: Some("/run/engine.sock".into()),
        board_revision: Some("c03114".into()),
        os_build: Some("2026-11".into()),
        cloud: Some(CloudAccess {
            url: "https://api.example.com".into(),
            key: ApiKey::from_text("device-key"),
        }),
        ..HostFacts::default()
    };
    let variables = |all: &[(&str, &str)]| -> BTreeMap<String, String> {
        all.iter()
            .map(|(name, value)| ((*name).into(), (*value).into()))
            .collect()
    };
    for (label, mounts, environment) in [
        (
            "platform-socket",
            vec![
                bind("/run/engine.sock", "/host/run/docker.sock", false),
                bind("/run/engine.sock", "/run/engine.sock", false),
            ],
            variables(&[("DOCKER_HOST", "unix:///run/engine.sock")]),
        ),
        (
            "platform-api",
            vec![],
            variables(&[
                ("PLATFORM_API_KEY", "device-key"),
                ("PLATFORM_API_URL", "https://api.example.com"),
            ]),
        ),
        (
            "host-os.board-rev",
            vec![],
            variables(&[
                ("PLATFORM_HOST_OS_BOARD_REV", "c03114"),
                ("PLATFORM_HOST_OS_BUILD", "2026-11"),
            ]),
        ),
    ] {
        let expected = (mounts, environment, Vec::<String>::new());
        assert_eq!(added(label, host.clone()), expected, "{label}");
    }
    for (label, why) in [
        (
            "platform-socket",
            "this device has no container engine with a socket",
        ),
        ("platform-api", "the device has no cloud"),
    ] {
        let message =
            format!("service `web`: `labels.io.platform.features.{label}` has no effect: {why}");
        let (mounts, variables, warnings) = added(label, HostFacts::default());
        assert_eq!(
            (mounts, variables.len(), warnings),
            (vec![], 0, vec![message])
        );
    }
}

#[test]
fn a_feature_has_its_place_whatever_is_mounted_there() {
    let service =
        json!({ "labels": { "io.platform.features.sysfs": "1" }, "volumes": ["data:/sys"] });
    let mounts = config(&service).mounts;
    assert!(mounts.contains(&bind("/sys", "/sys", false)));
    let message = "service `web`: `volumes` mounts at `/sys`, where a feature label mounts something as well: the mount of the label is used";
    assert!(warnings(&service).contains(&message.to_owned()));
}

#[test]
fn a_graphics_processor_is_asked_for_and_changes_no_other_services_digest() {
    let gpu = config(&json!({ "labels": { "io.platform.features.gpu": "1" } }));
    assert!(gpu.gpu);
    let without = serde_json::to_value(config(&json!({}))).unwrap();
    assert_eq!(without.get("gpu"), None);
}

#[test]
fn update_labels_are_read() {
    let service = web(&json!({ "labels": {
        "io.platform.update.strategy": "hand-over", "io.platform.update.handover-timeout": "5000", "io.platform.update.requires-reboot": "1",
    } }));
    assert_eq!(
        (
            service.strategy,
            service.handover_timeout.as_secs(),
            service.requires_reboot
        ),
        (UpdateStrategy::HandOver, 5, true)
    );
}

#[test]
fn on_the_hosts_network_the_hostname_is_the_devices() {
    assert_eq!(
        config(&json!({ "network_mode": "host" })).hostname,
        "0123456"
    );
    assert_eq!(
        config(&json!({ "network_mode": "host", "hostname": "mine" })).hostname,
        "mine"
    );
}

#[test]
fn a_vendors_names_are_used_throughout() {
    let mut facts = facts();
    facts.host_root = "/scratch/".into();
    facts.branding = Branding {
        env_prefix: "ACME_".into(),
        label_namespace: "com.acme".into(),
        folder: "acme".into(),
        aliases: vec!["OLD_".into()],
        ..Branding::default()
    };
    let target = release(
        &json!({ "web": { "labels": { "com.old.features.supervisor-api": "1" } } }),
        &json!({}),
        &json!({}),
    );
    let resolved = resolve(&target, &facts, &Keys).unwrap();
    let web = &resolved.desired.apps[&"12".parse().unwrap()].services[&"web".parse().unwrap()];
    for name in [
        "ACME",
        "OLD",
        "ACME_SUPERVISOR_API_KEY",
        "OLD_SUPERVISOR_API_KEY",
        "OLD_APP_NAME",
    ] {
        assert!(web.config.environment.contains_key(name), "{name}");
    }
    assert!(
        web.config
            .environment
            .keys()
            .all(|name| !name.starts_with("PLATFORM"))
    );
    assert!(
        web.config
            .labels
            .contains_key("com.acme.features.supervisor-api")
    );
    assert_eq!(
        web.config
            .mounts
            .iter()
            .map(|mount| serde_json::to_value(mount).unwrap()["target"].clone())
            .collect::<Vec<_>>(),
        ["/tmp/acme", "/tmp/old"]
    );
    assert_eq!(
        serde_json::to_value(&web.config.mounts[0]).unwrap()["source"],
        "/scratch/tmp/acme-supervisor/services/12/web"
    );
}
