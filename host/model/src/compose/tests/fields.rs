//! Each compose field of docs/spec/device.md#compose-fields: its forms, its default, its leniency.

use super::*;

/// The part of a configuration that differs from the default because of `fields`, as JSON.
fn changed(fields: &Value) -> Value {
    let plain = serde_json::to_value(config(&json!({}))).unwrap();
    let given = serde_json::to_value(config(fields)).unwrap();
    let mut changed = Map::new();
    for (key, value) in given.as_object().unwrap() {
        if plain[key] != *value && key != "labels" {
            changed.insert(key.clone(), value.clone());
        }
    }
    changed.into()
}

fn check(fields: Value, expected: Value) {
    assert_eq!(changed(&fields), expected, "{fields}");
}

#[test]
fn defaults_are_those_of_the_table() {
    let mut plain = serde_json::to_value(config(&json!({}))).unwrap();
    let plain = plain.as_object_mut().unwrap();
    for tested_elsewhere in [
        "labels",
        "environment",
        "networks",
        "network_mode",
        "mounts",
    ] {
        plain.remove(tested_elsewhere);
    }
    assert_eq!(
        Value::Object(plain.clone()),
        serde_json::from_str::<Value>(r#"{
            "image": "web:1", "command": null, "entrypoint": null, "restart": "always", "ports": [],
            "tmpfs": {}, "devices": [], "healthcheck": null, "mem_limit": 0, "mem_reservation": 0,
            "shm_size": 67108864, "stop_grace_period": 10, "stop_signal": null, "ulimits": {},
            "sysctls": {}, "dns": [], "dns_search": [], "dns_opt": [], "cap_add": [], "cap_drop": [],
            "extra_hosts": [], "group_add": [], "security_opt": [], "cpu_shares": 0, "cpu_quota": 0,
            "oom_score_adj": 0, "cpuset": "", "domainname": "", "hostname": "", "mac_address": "",
            "pid": "", "userns_mode": "", "cgroup_parent": "", "user": "", "working_dir": "",
            "ipc": "shareable", "pids_limit": 0, "privileged": false, "read_only": false,
            "oom_kill_disable": false, "init": null, "tty": true
        }"#)
        .unwrap()
    );
}

#[test]
fn commands_are_split_as_a_shell_does() {
    check(
        json!({ "command": "sh -c 'echo $HOME'" }),
        json!({ "command": ["sh", "-c", "echo $HOME"] }),
    );
    check(
        json!({ "command": ["a b", 1] }),
        json!({ "command": ["a b", "1"] }),
    );
    check(json!({ "command": "" }), json!({ "command": [] }));
    check(json!({ "entrypoint": [] }), json!({ "entrypoint": [] }));
    check(json!({ "command": null }), json!({}));
    assert_eq!(
        refused(&json!({ "command": "sh -c 'open" })).to_string(),
        "Invalid target state.\n`apps.12.services.web.command`: expected a command whose quotes are closed, found `\"sh -c 'open\"`"
    );
    refused(&json!({ "entrypoint": { "a": 1 } }));
}

#[test]
fn restart_policies_are_read_and_anything_else_is_always() {
    for (given, policy) in [
        ("no", "no"),
        ("on-failure", "on-failure"),
        ("unless-stopped", "unless-stopped"),
    ] {
        check(json!({ "restart": given }), json!({ "restart": policy }));
    }
    for given in [
        json!("always"),
        json!(false),
        json!("sometimes"),
        json!("on-failure:3"),
    ] {
        check(json!({ "restart": given }), json!({}));
    }
    assert_eq!(
        warnings(&json!({ "restart": "sometimes" })),
        ["service `web`: `restart` has the unreadable value `\"sometimes\"`: `always` is used"]
    );
}

#[test]
fn ports_have_short_and_long_forms() {
    let at = |host: Option<u16>, port: u16| json!({ "host_ip": "", "host_port": host, "container_port": port, "protocol": "tcp" });
    check(
        json!({ "ports": ["8080:80", 443, "443", { "target": 90, "published": "9090", "protocol": "udp", "mode": "host" }] }),
        json!({ "ports": [
            at(Some(443), 443), at(Some(8080), 80),
            { "host_ip": "", "host_port": 9090, "container_port": 90, "protocol": "udp" },
        ] }),
    );
    check(
        json!({ "ports": ["127.0.0.1::80", "90-91"] }),
        json!({ "ports": [
            at(Some(90), 90), at(Some(91), 91),
            { "host_ip": "127.0.0.1", "host_port": null, "container_port": 80, "protocol": "tcp" },
        ] }),
    );
    for bad in [
        json!(["80:80:80:80"]),
        json!([true]),
        json!([null]),
        json!([[]]),
        json!(["0"]),
        json!("x"),
        json!([{ "published": 80 }]),
        json!([{ "target": "80-81", "published": 80 }]),
    ] {
        refused(&json!({ "ports": bad }));
    }
    assert_eq!(
        refused(&json!({ "ports": ["80", "80:x"] })).to_string(),
        "Invalid target state.\n`apps.12.services.web.ports`: expected a port `[ip:][host[-host]:]container[-container][/tcp|udp]` with ranges of equal length, found `\"80:x\"`"
    );
}

#[test]
fn no_target_can_publish_ports_without_end() {
    let services: Map<String, Value> = (0..100)
        .map(|index| (format!("s{index}"), json!({ "ports": ["1-65535"] })))
        .collect();
    let resolved = resolved(&services.into());
    let problems = resolved.problems().unwrap();
    assert_eq!(problems.problems().len(), 98);
    assert_eq!(
        problems.problems()[0].expected,
        "fewer ports in all services together"
    );
}

#[test]
fn volumes_are_named_for_the_app_and_folders_of_the_host_are_dropped() {
    let with = |mounts: Value| {
        let config = config(&json!({ "volumes": mounts }));
        config
            .mounts
            .iter()
            .filter(|mount| !matches!(mount, crate::Mount::Bind { .. }))
            .map(|mount| serde_json::to_value(mount).unwrap())
            .collect::<Vec<_>>()
    };
    assert_eq!(
        with(json!(["data:/data/", "data:/ro:ro,z", "/cache"])),
        [
            json!({ "type": "volume", "source": "12_data", "target": "/data", "read_only": false }),
            json!({ "type": "volume", "source": "12_data", "target": "/ro", "read_only": true }),
            json!({ "type": "anonymous", "target": "/cache" }),
        ]
    );
    assert_eq!(
        with(json!([
            { "type": "volume", "source": "data", "target": "/data", "readOnly": true },
            { "type": "tmpfs", "target": "/run", "tmpfs": { "size": "1m" } },
            { "source": "data", "target": "/more" },
            { "type": "volume", "target": "/anonymous" },
        ])),
        [
            json!({ "type": "volume", "source": "12_data", "target": "/data", "read_only": true }),
            json!({ "type": "volume", "source": "12_data", "target": "/more", "read_only": false }),
            json!({ "type": "anonymous", "target": "/anonymous" }),
            json!({ "type": "tmpfs", "target": "/run", "size": 1_048_576 }),
        ]
    );
    for bind in [
        json!("/etc:/etc"),
        json!("./here:/there"),
        json!("~/x:/x"),
        json!({ "type": "bind", "source": "/etc", "target": "/etc", "bind": {} }),
        json!({ "type": "volume", "source": "/etc", "target": "/etc" }),
        json!({ "type": "npipe", "source": "x", "target": "/x" }),
    ] {
        assert!(with(json!([bind])).is_empty());
        assert_eq!(warnings(&json!({ "volumes": [bind] })).len(), 1, "{bind}");
    }
    assert_eq!(
        warnings(&json!({ "volumes": ["/etc:/etc"] })),
        [
            "service `web`: `volumes` mounts `/etc` of the host, which is not allowed: it was ignored"
        ]
    );
    for bad in [
        json!(["data"]),
        json!(["data:relative"]),
        json!(["a:b:c:d"]),
        json!(["-x:/x"]),
        json!([7]),
        json!("data:/data"),
        json!([{ "type": "volume", "source": "data" }]),
        json!(["data:/"]),
        json!([{ "type": "volume", "source": "a/b", "target": "/x" }]),
    ] {
        refused(&json!({ "volumes": bad }));
    }
}

#[test]
fn of_two_mounts_at_one_place_the_last_is_used() {
    let fields = json!({ "volumes": ["a:/data", "b:/data/"] });
    assert!(config(&fields).mounts.contains(&crate::Mount::Volume {
        source: "12_b".into(),
        target: "/data".into(),
        read_only: false
    }));
    assert!(warnings(&fields).contains(
        &"service `web`: `volumes` mounts twice at `/data`: the last mount is used".into()
    ));
}

#[test]
fn the_folder_of_locks_is_the_supervisors() {
    let fields = json!({ "volumes": ["mine:/tmp/platform"] });
    assert_eq!(
        config(&fields).mounts,
        [crate::Mount::Bind {
            source: "/tmp/platform-supervisor/services/12/web".into(),
            target: "/tmp/platform".into(),
            read_only: false
        }]
    );
    assert_eq!(
        warnings(&fields)[0],
        "service `web`: `volumes` mounts at `/tmp/platform`, which is reserved for the supervisor: it was ignored"
    );
}

#[test]
fn tmpfs_and_devices_are_read() {
    check(
        json!({ "tmpfs": "/run" }),
        json!({ "tmpfs": { "/run": "" } }),
    );
    check(
        json!({ "tmpfs": ["/run:size=64m,mode=1777", "/x/"] }),
        json!({ "tmpfs": { "/run": "size=64m,mode=1777", "/x": "" } }),
    );
    let device = |host, container, permissions| json!({ "host": host, "container": container, "permissions": permissions });
    check(
        json!({ "devices": ["/dev/b:/dev/c:r", "/dev/a", "/dev/d:rw", { "source": "/dev/e", "target": "/dev/f", "permissions": "m" }] }),
        json!({ "devices": [
            device("/dev/a", "/dev/a", "rwm"), device("/dev/b", "/dev/c", "r"),
            device("/dev/d", "/dev/d", "rw"), device("/dev/e", "/dev/f", "m"),
        ] }),
    );
    for bad in [
        json!({ "tmpfs": "run" }),
        json!({ "devices": ["dev"] }),
        json!({ "devices": ["/dev/a:/dev/b:x"] }),
    ] {
        refused(&bad);
    }
}

#[test]
fn healthchecks_are_read() {
    check(
        json!({ "healthcheck": { "test": "curl -f localhost", "interval": "1m30s", "timeout": "10s", "retries": 3, "startPeriod": "40s" } }),
        json!({ "healthcheck": {
            "test": ["CMD-SHELL", "curl -f localhost"], "interval": 90_000_000_000_i64,
            "timeout": 10_000_000_000_i64, "start_period": 40_000_000_000_i64, "retries": 3,
        } }),
    );
    let test = |words: Value| json!({ "healthcheck": { "test": words, "interval": null, "timeout": null, "start_period": null, "retries": null } });
    check(
        json!({ "healthcheck": { "disable": true, "test": "x" } }),
        test(json!(["NONE"])),
    );
    check(
        json!({ "healthcheck": { "test": ["CMD", "true"] } }),
        test(json!(["CMD", "true"])),
    );
    check(json!({ "healthcheck": {} }), json!({}));
    refused(&json!({ "healthcheck": { "test": ["true"] } }));
    assert_eq!(
        warnings(
            &json!({ "healthcheck": { "test": "x", "interval": "often", "start_interval": "1s" } })
        ),
        [
            "service `web`: `healthcheck.interval` has the unreadable value `\"often\"`: the default is used",
            "service `web`: `healthcheck.start_interval` is not supported and was ignored",
        ]
    );
}

#[test]
fn plain_fields_are_read() {
    for (fields, expected) in [
        (
            json!({ "mem_limit": "1g", "memReservation": 5, "shm_size": "1m" }),
            json!({ "mem_limit": 1_073_741_824, "mem_reservation": 5, "shm_size": 1_048_576 }),
        ),
        (json!({ "mem_limit": "lots", "shm_size": -1 }), json!({})),
        (
            json!({ "stop_grace_period": "1m" }),
            json!({ "stop_grace_period": 60 }),
        ),
        (
            json!({ "stopGracePeriod": 3 }),
            json!({ "stop_grace_period": 3 }),
        ),
        (
            json!({ "stop_grace_period": "1500ms" }),
            json!({ "stop_grace_period": 2 }),
        ),
        (
            json!({ "stop_grace_period": "0s" }),
            json!({ "stop_grace_period": 0 }),
        ),
        (json!({ "stop_signal": 9 }), json!({ "stop_signal": "9" })),
        (
            json!({ "ulimits": { "nproc": 5, "nofile": { "soft": "1", "hard": -1 }, "bad": "x" } }),
            json!({ "ulimits": { "nofile": { "soft": 1, "hard": -1 }, "nproc": { "soft": 5, "hard": 5 } } }),
        ),
        (
            json!({ "sysctls": ["net.a=1", "b"] }),
            json!({ "sysctls": { "net.a": "1", "b": "" } }),
        ),
        (
            json!({ "sysctls": { "net.a": 1 } }),
            json!({ "sysctls": { "net.a": "1" } }),
        ),
        (
            json!({ "dns": "1.1.1.1", "dnsSearch": ["b", "a", "b"] }),
            json!({ "dns": ["1.1.1.1"], "dns_search": ["b", "a", "b"] }),
        ),
        (
            json!({ "cap_add": ["B", "A", "B"], "capDrop": "ALL" }),
            json!({ "cap_add": ["A", "B"], "cap_drop": ["ALL"] }),
        ),
        (
            json!({ "dns_opt": ["z", "y"], "group_add": [7, "a"], "security_opt": ["label=disable"] }),
            json!({ "dns_opt": ["y", "z"], "group_add": ["7", "a"], "security_opt": ["label=disable"] }),
        ),
        (
            json!({ "extra_hosts": ["b=::1", "a:1.2.3.4", "bad"] }),
            json!({ "extra_hosts": ["a:1.2.3.4", "b:::1"] }),
        ),
        (
            json!({ "extra_hosts": { "a": ["1.2.3.4", "5.6.7.8"] } }),
            json!({ "extra_hosts": ["a:1.2.3.4", "a:5.6.7.8"] }),
        ),
        (
            json!({ "cpu_shares": "512", "cpu_quota": 50_000, "oom_score_adj": -500, "pids_limit": 9 }),
            json!({ "cpu_shares": 512, "cpu_quota": 50_000, "oom_score_adj": -500, "pids_limit": 9 }),
        ),
        (
            json!({ "cpu_shares": 1.5, "cpu_quota": "x", "oom_score_adj": 5000, "pids_limit": [] }),
            json!({}),
        ),
        (
            json!({ "cpuset": "0,1", "domainname": "d", "hostname": "h", "mac_address": "02:00:00:00:00:01", "userns_mode": "host", "cgroup_parent": "g", "user": 1000, "working_dir": "/srv//" }),
            json!({ "cpuset": "0,1", "domainname": "d", "hostname": "h", "mac_address": "02:00:00:00:00:01", "userns_mode": "host", "cgroup_parent": "g", "user": "1000", "working_dir": "/srv" }),
        ),
        (json!({ "working_dir": "/" }), json!({ "working_dir": "/" })),
        (
            json!({ "ipc": "host", "pid": "host" }),
            json!({ "ipc": "host", "pid": "host" }),
        ),
        (
            json!({ "ipc": "service:db", "pid": "container:x" }),
            json!({}),
        ),
        (
            json!({ "privileged": "true", "readOnly": 1, "oom_kill_disable": true, "tty": false, "init": "false" }),
            json!({ "privileged": true, "read_only": true, "oom_kill_disable": true, "tty": false, "init": false }),
        ),
        (json!({ "privileged": "false", "init": null }), json!({})),
    ] {
        check(fields, expected);
    }
}

#[test]
fn cpus_are_read_and_not_compared() {
    let limited = web(&json!({ "cpus": "1.5" }));
    assert_eq!(limited.config.nano_cpus, 1_500_000_000);
    assert_eq!(limited.digest, web(&json!({})).digest);
    assert_eq!(warnings(&json!({ "cpus": "many" })).len(), 1);
}

#[test]
fn unsupported_fields_give_one_warning_each() {
    assert_eq!(
        warnings(
            &json!({ "build": { "context": "." }, "containerName": "x", "storage_opt": {}, "tipo": 1, "x-note": "fine" })
        ),
        [
            "service `web`: `build` is not supported and was ignored",
            "service `web`: `container_name` is not supported and was ignored",
            "service `web`: `storage_opt` is not supported and was ignored",
            "service `web`: `tipo` is not supported and was ignored",
        ]
    );
    let many: Map<String, Value> = (0..10_000)
        .map(|n| (format!("f{n:05}"), json!(1)))
        .collect();
    let warnings = warnings(&many.into());
    assert_eq!(warnings.len(), 201);
    assert_eq!(warnings.last().map(String::as_str), Some("and 9800 more"));
}

#[test]
fn lists_that_no_service_can_mean_are_refused() {
    for field in [
        "cap_add",
        "dns",
        "ports",
        "volumes",
        "depends_on",
        "networks",
        "sysctls",
    ] {
        let text = refused(&json!({ field: vec!["x"; 4097] })).to_string();
        assert!(
            text.contains("expected at most 4096 items, found `a list of 4097`"),
            "{text}"
        );
    }
}

#[test]
fn no_target_can_hold_items_without_end() {
    let services: Map<String, Value> = (0..40)
        .map(|index| (format!("s{index}"), json!({ "cap_add": vec!["x"; 4096] })))
        .collect();
    let problems = resolved(&services.into()).problems().unwrap();
    assert_eq!(problems.problems().len(), 8);
    assert_eq!(
        problems.problems()[0].expected,
        "fewer items in the whole target"
    );
}

#[test]
fn nothing_may_hold_a_nul() {
    for fields in [
        json!({ "command": ["a\u{0}b"] }),
        json!({ "sysctls": { "a\u{0}": "1" } }),
        json!({ "hostname": "\u{0}" }),
    ] {
        assert!(
            refused(&fields)
                .to_string()
                .contains("texts without NUL characters")
        );
    }
}

#[test]
fn fields_of_any_shape_never_panic() {
    let shapes = [
        json!(null),
        json!(true),
        json!(-1),
        json!(1.5),
        json!(1e300),
        json!(""),
        json!("x:y=z"),
        json!([]),
        json!([null, {}, [], -1, "é:ü"]),
        json!({}),
        json!({ "a": null, "": {}, "b": [[]] }),
    ];
    let config = serde_json::to_value(config(&json!({}))).unwrap();
    let fields = config.as_object().unwrap().keys().map(String::as_str);
    for field in fields.chain([
        "volumes",
        "depends_on",
        "cpus",
        "labels",
        "environment",
        "build",
    ]) {
        for shape in &shapes {
            // A service's own labels and environment are checked earlier, those of a composition
            // here.
            let mut target = release(&json!({ "web": {} }), &json!({}), &json!({}));
            let app = target.apps.values_mut().next().unwrap();
            let release = app.release.as_mut().unwrap();
            let web = release.services.values_mut().next().unwrap();
            web.composition.insert(field.to_owned(), shape.clone());
            release.networks.insert(
                "n".into(),
                Map::from_iter([
                    (field.to_owned(), shape.clone()),
                    ("ipam".into(), shape.clone()),
                ]),
            );
            release.volumes.insert(
                "v".into(),
                Map::from_iter([(field.to_owned(), shape.clone())]),
            );
            resolve(&target, &facts(), &Keys).unwrap();
        }
    }
}
