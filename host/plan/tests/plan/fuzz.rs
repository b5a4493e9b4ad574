//! Target states that nobody would send, from the cloud and over the local API: each is refused with a message, or
//! resolved and planned with the same result twice.

use fuzz::values::changed;
use model::compose::{ApiKeys, HostFacts, KeyError, ResolvedTarget, resolve};
use model::{
    ApiKey, AppId, Branding, DeviceFacts, LocalDefaults, ServiceName, TargetErrors, TargetState,
};
use plan::{CurrentState, forecast, plan};
use proptest::prelude::*;
use serde_json::{Value, json};

const DEVICE: &str = "0123456789abcdef0123456789abcdef";
const NAMES: &[&str] = &[
    "name",
    "config",
    "apps",
    "id",
    "class",
    "is_host",
    "releases",
    "services",
    "volumes",
    "networks",
    "image_id",
    "imageId",
    "image",
    "environment",
    "labels",
    "composition",
    "running",
    "contract",
    "serviceName",
    "serviceId",
    "commit",
    "releaseId",
    "ports",
    "expose",
    "network_mode",
    "depends_on",
    "command",
    "entrypoint",
    "restart",
    "privileged",
    "cap_add",
    "devices",
    "tmpfs",
    "healthcheck",
    "test",
    "interval",
    "ulimits",
    "mem_limit",
    "cpus",
    "stop_grace_period",
    "stop_signal",
    "extra_hosts",
    "dns",
    "sysctls",
    "user",
    "working_dir",
    "hostname",
    "aliases",
    "ipv4_address",
    "ipam",
    "driver",
    "driver_opts",
    "internal",
    "logging",
    "init",
    "read_only",
    "shm_size",
    "ipc",
    "pid",
    "uts",
    "security_opt",
    "group_add",
    "runtime",
    "local",
    "12",
    "13",
    "io.platform.features.supervisor-api",
    "io.platform.features.dbus",
    "io.platform.update.strategy",
    "io.platform.update.handover-timeout",
    "SUPERVISOR_POLL_INTERVAL",
    "HOST_CONFIG_gpu_mem",
    "A",
];
const TEXTS: &[&str] = &[
    "",
    "1",
    "-1",
    "0",
    "true",
    "on",
    "web",
    "web:1",
    "r.io/web@sha256:ab",
    "file:/etc/passwd",
    "http://x/y",
    "../../x",
    "/",
    "/a:/b",
    "data:/data",
    "data:/data:ro,z",
    "80",
    "80:80",
    "80-90:80-90",
    "1-65535:1-65535",
    "127.0.0.1::80/udp",
    "99999:1",
    "[::1]:80:80",
    "host",
    "none",
    "bridge",
    "service:web",
    "service:a",
    "container:x",
    "always",
    "on-failure:99999999999",
    "1h30m",
    "9e99s",
    "1g",
    "1.5e300g",
    "18446744073709551616",
    "hand-over",
    "kill-then-download",
    "fleet",
    "app",
    "supervisor",
    "a=b",
    "=",
    "${A}",
    "$$",
    "\"unclosed",
    "a 'b' \\",
    "x\u{0}y",
    "é",
    "tcp",
    "10.0.0.0/8",
    "300.0.0.1",
    "SIGKILL",
    "64",
];

struct Keys;

impl ApiKeys for Keys {
    fn service_key(&self, app: AppId, service: &ServiceName) -> Result<ApiKey, KeyError> {
        Ok(ApiKey::from_text(format!("key-of-{app}-{service}")))
    }
}

fn facts() -> DeviceFacts {
    DeviceFacts {
        uuid: DEVICE.parse().unwrap(),
        name: "bench".into(),
        hostname: "0123456".into(),
        device_type: "generic-amd64".into(),
        arch: "amd64".into(),
        os_version: "Debian GNU/Linux 12".into(),
        host_root: "/".into(),
        api_port: 48484,
        branding: Branding::default(),
        host: HostFacts::default(),
    }
}

fn composition() -> Value {
    json!({
        "image": "hub.io/web:1", "ports": ["80", "127.0.0.1:8080:80/tcp"],
        "depends_on": { "db": { "condition": "service_started" } },
        "volumes": ["data:/data", { "type": "tmpfs", "target": "/t" }],
        "networks": { "back": { "aliases": ["w"] } }, "command": "run --it",
        "environment": ["A=b"], "restart": "always", "mem_limit": "64m",
        "ulimits": { "nofile": { "soft": 1, "hard": 2 } },
        "healthcheck": { "test": ["CMD", "true"], "interval": "10s" }, "cap_add": ["NET_ADMIN"],
        "devices": ["/dev/null:/dev/x:rwm"], "extra_hosts": ["a:1.2.3.4"], "stop_grace_period": "5s",
        "labels": { "io.platform.features.supervisor-api": "1" }, "tmpfs": ["/run"],
        "logging": { "driver": "json-file" }, "sysctls": { "net.core.somaxconn": 1 },
    })
}

fn from_cloud() -> Value {
    let services = json!({
        "web": { "id": 3, "image_id": "5", "image": "r.io/web@sha256:ab", "environment": { "A": "b" },
            "labels": {}, "composition": composition() },
        "db": { "id": 4, "image_id": "6", "image": "r.io/db:1", "environment": {}, "labels": {} },
    });
    let networks = json!({ "back": { "internal": true, "ipam": { "config": [{ "subnet": "10.9.0.0/24" }] } } });
    json!({ DEVICE: { "name": "device", "config": { "PLATFORM_SUPERVISOR_DELTA": "1" }, "apps": {
        "a1b2": { "id": "12", "name": "shop", "class": "fleet", "releases": { "c0ffee": {
            "id": 1, "services": services, "volumes": { "data": {} }, "networks": networks,
        } } },
        "b2": { "id": 13, "name": "os", "is_host": true },
    } } })
}

fn from_owner() -> Value {
    let mut web = composition();
    web["imageId"] = json!(5);
    web["serviceName"] = json!("web");
    web["image"] = json!("nginx");
    web["running"] = json!(true);
    let db = json!({ "imageId": 6, "serviceName": "db", "image": "db", "environment": {}, "labels": {} });
    json!({ "local": { "name": "device", "config": { "HOST_CONFIG_gpu_mem": "" }, "apps": { "12": {
        "name": "shop", "commit": "localrelease", "releaseId": "1", "services": { "3": web, "4": db },
        "volumes": { "data": {} }, "networks": { "back": {} },
    } } } })
}

/// Checks that a refusal is a message of bounded length.
fn refused(errors: &TargetErrors) -> Result<(), TestCaseError> {
    let text = errors.to_string();
    prop_assert!(text.starts_with("Invalid target state."), "{}", text);
    prop_assert!(text.len() < 200_000, "{} bytes", text.len());
    Ok(())
}

fn planned(target: &TargetState) -> Result<(), TestCaseError> {
    let resolved = || resolve(target, &facts(), &Keys).unwrap();
    let ResolvedTarget {
        desired,
        warnings,
        rejected,
    } = resolved();
    prop_assert_eq!(&resolved().desired, &desired);
    for errors in rejected.values() {
        refused(errors)?;
    }
    for warning in &warnings {
        let length = warning.len();
        prop_assert!(length < 4_000, "{} bytes: {:.200}", length, warning);
    }
    let current = CurrentState::default();
    let steps = plan(&current, &desired).steps;
    prop_assert_eq!(&plan(&current, &desired).steps, &steps);
    let _ = forecast(&current, &desired);
    Ok(())
}

#[test]
fn any_target_of_a_cloud_is_refused_or_planned() {
    let inputs = changed(vec![from_cloud()], NAMES, TEXTS);
    fuzz::run("cloud-targets", 600, &inputs, |body| {
        let device = DEVICE.parse().expect("a uuid");
        match TargetState::from_cloud_json(&body, &device, &Branding::default()) {
            Ok(target) => planned(&target),
            Err(errors) => refused(&errors),
        }
    });
}

#[test]
fn any_local_target_is_refused_or_planned_and_shown_as_it_was_given() {
    let defaults = LocalDefaults {
        device_name: "bench".into(),
        branding: Branding::default(),
    };
    let inputs = changed(vec![from_owner()], NAMES, TEXTS);
    fuzz::run("local-targets", 600, &inputs, |body| {
        match TargetState::from_local_json(&body, &defaults) {
            Ok(target) => {
                // The output of the API can be sent back, and means the same.
                let shown = target.to_local_json(true);
                let again = TargetState::from_local_json(&shown, &defaults)
                    .map_err(|errors| TestCaseError::fail(errors.to_string()))?;
                prop_assert_eq!(&again.apps, &target.apps);
                prop_assert_eq!(again.to_local_json(true), shown);
                planned(&target)
            }
            Err(errors) => refused(&errors),
        }
    });
}
