//! Apps as a whole: names, networks, volumes, dependencies, and what happens to a refused one.

use std::collections::BTreeMap;

use super::*;
use crate::{AppClass, DesiredApp, NetworkAttachment, NetworkMode, TargetApp};

fn app(resolved: &ResolvedTarget) -> &DesiredApp {
    &resolved.desired.apps[&"12".parse().unwrap()]
}

fn joined(fields: &Value) -> (NetworkMode, Vec<String>) {
    let config = config(fields);
    (config.network_mode, config.networks.into_keys().collect())
}

fn network(name: &str) -> NetworkMode {
    NetworkMode::Network(name.to_owned())
}

#[test]
fn names_follow_the_app() {
    let resolved = resolve(
        &release(
            &json!({ "web": {} }),
            &json!({ "data": {} }),
            &json!({ "back": {} }),
        ),
        &facts(),
        &Keys,
    )
    .unwrap();
    let app = app(&resolved);
    assert_eq!(app.volumes["data"].engine_name, "12_data");
    assert_eq!(app.networks["back"].engine_name, "12_back");
    assert_eq!(app.networks["default"].engine_name, "12_default");
    let web = &app.services[&"web".parse().unwrap()];
    assert_eq!(web.container_name(), "web_100_7_c0ffee");
    assert_eq!(resolved.warnings, Vec::<String>::new());
}

#[test]
fn the_network_mode_follows_its_rules() {
    for (fields, mode, names) in [
        (json!({}), network("12_default"), vec!["12_default"]),
        (
            json!({ "networks": ["b", "a"] }),
            network("12_b"),
            vec!["12_a", "12_b"],
        ),
        (
            json!({ "networks": { "b": null, "a": {} } }),
            network("12_b"),
            vec!["12_a", "12_b"],
        ),
        (
            json!({ "networks": ["b"], "network_mode": "a" }),
            network("12_a"),
            vec!["12_a", "12_b"],
        ),
        (json!({ "networkMode": "host" }), NetworkMode::Host, vec![]),
        (
            json!({ "network_mode": "host", "networks": ["a"] }),
            NetworkMode::Host,
            vec![],
        ),
        (json!({ "network_mode": "none" }), NetworkMode::None, vec![]),
        (
            json!({ "network_mode": "bridge" }),
            NetworkMode::Bridge,
            vec![],
        ),
        (
            json!({ "network_mode": "container:x" }),
            network("12_default"),
            vec!["12_default"],
        ),
        (
            json!({ "network_mode": "" }),
            network("12_default"),
            vec!["12_default"],
        ),
    ] {
        let names: Vec<String> = names.into_iter().map(str::to_owned).collect();
        assert_eq!(joined(&fields), (mode, names), "{fields}");
    }
    assert_eq!(
        warnings(&json!({ "network_mode": "container:x" })),
        [
            "service `web`: `network_mode` names a container, which is not supported, and was ignored"
        ]
    );
    for bad in ["a/b", "service:", "service:-x"] {
        refused(&json!({ "network_mode": bad }));
    }
}

#[test]
fn a_service_joins_a_network_under_its_name_and_aliases() {
    let config = config(&json!({ "networks": { "a": {
        "aliases": ["www", "web"], "ipv4Address": "10.0.0.5", "ipv6_address": "fd00::5", "link_local_ips": ["169.254.1.2", "169.254.1.1"],
    } } }));
    assert_eq!(
        config.networks["12_a"],
        NetworkAttachment {
            aliases: vec!["web".into(), "www".into()],
            ipv4_address: Some("10.0.0.5".into()),
            ipv6_address: Some("fd00::5".into()),
            link_local_ips: vec!["169.254.1.1".into(), "169.254.1.2".into()],
        }
    );
    for bad in [
        json!({ "a": { "ipv4_address": "10.0.0" } }),
        json!({ "a": 1 }),
        json!({ "a/b": {} }),
        json!([{}]),
        json!(7),
    ] {
        let text = refused(&json!({ "networks": bad })).to_string();
        assert!(text.contains("`apps.12.services.web.networks"), "{text}");
    }
    assert_eq!(
        warnings(&json!({ "networks": { "default": { "priority": 5 } } })),
        ["service `web`: `networks.default.priority` is not supported and was ignored"]
    );
}

#[test]
fn sharing_a_services_network_means_starting_after_it() {
    let resolved = resolved(&json!({ "web": { "network_mode": "service:db" }, "db": {} }));
    let web = &app(&resolved).services[&"web".parse().unwrap()];
    assert_eq!(
        web.config.network_mode,
        NetworkMode::Service("db".parse().unwrap())
    );
    assert_eq!(web.depends_on, ["db".parse().unwrap()]);
    assert_eq!(
        refused(&json!({ "network_mode": "service:db" })).to_string(),
        "Invalid target state.\n`apps.12.services.web.network_mode`: expected the name of a service of the same release, found `\"service:db\"`"
    );
}

#[test]
fn dependencies_have_two_forms() {
    for depends_on in [
        json!(["db", "cache", "db"]),
        json!({ "db": { "condition": "service_started" }, "cache": {} }),
    ] {
        let resolved =
            resolved(&json!({ "web": { "dependsOn": depends_on }, "db": {}, "cache": {} }));
        let web = &app(&resolved).services[&"web".parse().unwrap()];
        assert_eq!(
            web.depends_on,
            ["cache".parse().unwrap(), "db".parse().unwrap()]
        );
        assert_eq!(web.config.labels["io.platform.depends-on"], "cache,db");
        assert_eq!(resolved.warnings, Vec::<String>::new());
    }
    let alone = resolved(&json!({ "web": { "labels": { "io.platform.depends-on": "db" } } }));
    let web = &app(&alone).services[&"web".parse().unwrap()];
    assert_eq!(web.config.labels.get("io.platform.depends-on"), None);
    let healthy = resolved(
        &json!({ "web": { "depends_on": { "db": { "condition": "service_healthy" } } }, "db": {} }),
    );
    assert_eq!(
        healthy.warnings,
        [
            "service `web`: `depends_on` requests `service_healthy`, which is not supported: only the start order is kept"
        ]
    );
    let unknown = resolved(&json!({ "web": { "depends_on": ["nobody"] } }));
    assert_eq!(
        unknown.warnings,
        [
            "service `web`: `depends_on` names `nobody`, which the release does not have, and was ignored"
        ]
    );
    assert!(
        app(&unknown).services[&"web".parse().unwrap()]
            .depends_on
            .is_empty()
    );
}

#[test]
fn services_that_wait_for_each_other_are_refused() {
    for services in [
        json!({ "a": { "depends_on": ["a"] } }),
        json!({ "a": { "depends_on": ["b"] }, "b": { "depends_on": ["c"] }, "c": { "network_mode": "service:a" } }),
    ] {
        let text = resolved(&services).problems().unwrap().to_string();
        assert!(
            text.contains("`apps.12.services.a.depends_on`: expected services that do not wait"),
            "{text}"
        );
    }
}

#[test]
fn the_default_network_is_only_a_name_where_all_use_the_hosts() {
    for (services, config_only) in [
        (
            json!({ "a": { "network_mode": "host" }, "b": { "network_mode": "host" } }),
            true,
        ),
        (json!({ "a": { "network_mode": "host" }, "b": {} }), false),
        (json!({}), false),
    ] {
        let resolved = resolved(&services);
        assert_eq!(
            app(&resolved).networks["default"].config.config_only,
            config_only
        );
    }
}

#[test]
fn networks_and_volumes_are_read() {
    let resolved = resolve(
        &release(
            &json!({}),
            &json!({ "data": { "driver_opts": { "type": "tmpfs" }, "labels": ["a=b"], "external": true } }),
            &json!({ "back": {
                "driver": "macvlan", "driverOpts": { "mtu": 1400 }, "enable_ipv6": "true", "internal": true,
                "labels": { "c": "d" }, "attachable": true,
                "ipam": { "options": { "o": 1 }, "config": [
                    { "subnet": "10.2.0.0/16", "gateway": "10.2.0.1", "ipRange": "10.2.1.0/24", "aux_addresses": { "h": "10.2.0.9" } },
                    { "subnet": "10.1.0.0/16" },
                ] },
            } }),
        ),
        &facts(),
        &Keys,
    )
    .unwrap();
    let app = app(&resolved);
    let back = &app.networks["back"].config;
    assert_eq!(
        (back.driver.as_str(), back.driver_opts["mtu"].as_str()),
        ("macvlan", "1400")
    );
    assert!(back.enable_ipv6 && back.internal && !back.config_only);
    assert_eq!(back.ipam.len(), 2);
    assert_eq!(
        back.ipam[0].subnet.as_deref(),
        Some("10.1.0.0/16"),
        "sorted"
    );
    assert_eq!(back.ipam[1].ip_range.as_deref(), Some("10.2.1.0/24"));
    assert_eq!(back.ipam[1].aux_addresses["h"], "10.2.0.9");
    assert_eq!(back.labels["c"], "d");
    assert_eq!(back.labels["io.platform.private.ipam.config"], "true");
    let data = &app.volumes["data"].config;
    assert_eq!(
        (data.driver.as_str(), data.driver_opts["type"].as_str()),
        ("local", "tmpfs")
    );
    for labels in [&back.labels, &data.labels] {
        assert_eq!(labels["io.platform.supervised"], "true");
        assert_eq!(labels["io.platform.app-id"], "12");
        assert_eq!(labels["io.platform.app-uuid"], "12");
        assert_eq!(labels["io.platform.device-uuid"], facts().uuid.as_str());
        assert_eq!(labels["io.platform.config-digest"].len(), 64);
    }
    assert_eq!(
        resolved.warnings,
        [
            "network `back`: `ipam.config` has an entry without a subnet or a gateway",
            "network `back`: `attachable` is not supported and was ignored",
            "volume `data`: `external` is not supported and was ignored",
        ]
    );
}

#[test]
fn undefined_networks_and_volumes_of_a_service_are_created_with_defaults() {
    let resolved = resolved(&json!({ "web": { "networks": ["back"], "volumes": ["data:/data"] } }));
    assert!(app(&resolved).networks.contains_key("back"));
    assert!(app(&resolved).volumes.contains_key("data"));
    assert_eq!(
        resolved.warnings,
        [
            "network `back` is not defined in the release: it is created with defaults",
            "volume `data` is not defined in the release: it is created with defaults",
        ]
    );
}

#[test]
fn a_refused_app_leaves_the_others_alone() {
    let good = release(&json!({ "web": {} }), &json!({}), &json!({}));
    let mut target = release(
        &json!({ "web": { "ports": ["x"] } }),
        &json!({}),
        &json!({}),
    );
    let (uuid, mut other) = good.apps.into_iter().next().unwrap();
    other.id = AppId(13);
    other.uuid = "13".parse().unwrap();
    other.release.as_mut().unwrap().id = crate::ReleaseId(8);
    target.apps.insert(other.uuid.clone(), other.clone());
    let resolved = resolve(&target, &facts(), &Keys).unwrap();
    assert!(resolved.desired.apps[&uuid].rejected);
    assert!(resolved.desired.apps[&uuid].networks.is_empty());
    assert_eq!(resolved.desired.apps[&other.uuid].services.len(), 1);
    assert_eq!(resolved.rejected.keys().collect::<Vec<_>>(), [&uuid]);
}

#[test]
fn of_two_apps_that_want_one_container_name_the_second_is_refused() {
    let services = json!({ "web": {}, "db": { "imageId": 5 } });
    let mut target = release(&services, &json!({}), &json!({}));
    let (first, mut other) = target.apps.clone().into_iter().next().unwrap();
    other.id = AppId(13);
    other.uuid = "13".parse().unwrap();
    let services = &mut other.release.as_mut().unwrap().services;
    services
        .get_mut(&"db".parse::<ServiceName>().unwrap())
        .unwrap()
        .image_id = crate::ImageId(6);
    target.apps.insert(other.uuid.clone(), other.clone());
    let both = resolve(&target, &facts(), &Keys).unwrap();
    assert!(!both.desired.apps[&first].rejected);
    assert_eq!(both.desired.apps[&first].services.len(), 2);
    assert_eq!(
        both.problems().unwrap().to_string(),
        "Invalid target state.\n`apps.13.services.web`: expected an image id, release or commit with which its \
         container's name differs from one of app 12, found `\"web_100_7_c0ffee\"`"
    );
    // Each of the three is enough.
    for change in [0, 1, 2] {
        let release = other.release.as_mut().unwrap();
        let before = release.clone();
        match change {
            0 => release.id = crate::ReleaseId(8),
            1 => release.commit = "beef".parse().unwrap(),
            _ => {
                let web: ServiceName = "web".parse().unwrap();
                release.services.get_mut(&web).unwrap().image_id = crate::ImageId(6);
            }
        }
        target.apps.insert(other.uuid.clone(), other.clone());
        let resolved = resolve(&target, &facts(), &Keys).unwrap();
        assert_eq!(resolved.problems(), None, "{change}");
        other.release = Some(before);
    }
}

#[test]
fn host_apps_are_shown_and_not_run() {
    let mut target = release(
        &json!({ "web": { "ports": ["x"] } }),
        &json!({}),
        &json!({}),
    );
    for app in target.apps.values_mut() {
        app.is_host = true;
    }
    let resolved = resolve(&target, &facts(), &Keys).unwrap();
    let app = app(&resolved);
    assert!(app.not_ours && !app.rejected && app.services.is_empty() && app.networks.is_empty());
    assert_eq!(
        app.commit.as_ref().map(ToString::to_string).as_deref(),
        Some("c0ffee")
    );
}

#[test]
fn the_supervisors_own_app_is_shown_and_not_run() {
    let mut of_any_name = facts();
    of_any_name.host.own_app = Some("12".parse().unwrap());
    for (name, class, facts, own) in [
        ("aarch64-supervisor", AppClass::App, facts(), true),
        // A single fleet may have any name.
        ("aarch64-supervisor", AppClass::Fleet, facts(), false),
        ("pump", AppClass::App, facts(), false),
        ("pump", AppClass::Fleet, of_any_name, true),
    ] {
        let mut target = release(&json!({ "web": {} }), &json!({}), &json!({}));
        for app in target.apps.values_mut() {
            app.name = name.to_owned();
            app.class = class;
        }
        let resolved = resolve(&target, &facts, &Keys).unwrap();
        let app = app(&resolved);
        assert_eq!(app.not_ours, own, "{name} {class:?}");
        assert_eq!(app.services.is_empty(), own, "{name} {class:?}");
    }
}

#[test]
fn a_fleet_beside_the_fleet_runs_nothing_under_the_name_of_a_supervisor() {
    for (name, class, is_alone, is_refused) in [
        ("aarch64-supervisor", AppClass::Fleet, false, true),
        ("x-supervisor", AppClass::Fleet, false, true),
        // A single fleet may have any name.
        ("x-supervisor", AppClass::Fleet, true, false),
        ("pump", AppClass::Fleet, false, false),
        ("supervisor-tools", AppClass::Fleet, false, false),
        // It is not run, so there is nothing to refuse.
        ("aarch64-supervisor", AppClass::App, false, false),
        ("x-supervisor", AppClass::Block, false, false),
    ] {
        let services = json!({ "web": { "privileged": true } });
        let mut target = release(&services, &json!({}), &json!({}));
        let fleet = target.apps.values().next().unwrap().clone();
        for app in target.apps.values_mut() {
            app.name = name.to_owned();
            app.class = class;
        }
        if !is_alone {
            let uuid: crate::AppUuid = "13".parse().unwrap();
            let app = TargetApp {
                uuid: uuid.clone(),
                id: AppId(13),
                release: None,
                ..fleet
            };
            target.apps.insert(uuid, app);
        }
        let resolved = resolve(&target, &facts(), &Keys).unwrap();
        assert_eq!(
            app(&resolved).rejected,
            is_refused,
            "{name} {class:?} {is_alone}"
        );
        assert!(!is_refused || app(&resolved).services.is_empty());
        let beside = resolved.desired.apps.get(&"13".parse().unwrap());
        assert!(beside.is_none_or(|app| !app.rejected), "{name}");
    }
}

#[test]
fn an_app_without_a_release_wants_nothing() {
    let mut target = release(&json!({ "web": {} }), &json!({}), &json!({}));
    for app in target.apps.values_mut() {
        app.release = None;
    }
    let resolved = resolve(&target, &facts(), &Keys).unwrap();
    let app = app(&resolved);
    assert!(app.services.is_empty() && app.networks == BTreeMap::new() && app.commit.is_none());
}
