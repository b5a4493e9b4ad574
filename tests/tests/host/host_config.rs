//! `GET` and `PATCH /v1/device/host-config`: the files and the system bus of the host, and update locks.

use std::fs;
use std::path::PathBuf;

use serde_json::{Value, json};
use tests::{Answer, Supervisor, SystemBus, guest, service, target};

const PATH: &str = "/v1/device/host-config";

async fn patch(device: &Supervisor, body: &Value) -> Answer {
    device.send(device.request("PATCH", PATH).json(body)).await
}

/// Sends a PATCH, and returns status and text.
async fn patched(device: &Supervisor, network: Value) -> (u16, String) {
    let answer = patch(device, &json!({ "network": network })).await;
    let kind = answer.content_type.as_deref();
    assert_eq!(kind, Some("text/plain; charset=utf-8"), "{answer:?}");
    (answer.status, answer.text)
}

async fn set(device: &Supervisor, network: Value) {
    let answer = patched(device, network.clone()).await;
    assert_eq!(answer, (200, "OK".to_owned()), "{network}");
}

async fn network(device: &Supervisor) -> Value {
    device.json(PATH).await["network"].clone()
}

fn on_host(device: &Supervisor, path: &str) -> PathBuf {
    device.host_root().join(path)
}

fn read(device: &Supervisor, path: &str) -> Option<String> {
    fs::read_to_string(on_host(device, path)).ok()
}

fn proxy() -> Value {
    json!({ "type": "socks5", "ip": "10.2.2.2", "port": 1080, "noProxy": ["10.0.0.0/8"] })
}

#[tokio::test]
async fn name_and_proxy_are_set_in_the_hosts_files_and_shown() {
    let device = Supervisor::on_wasm().start().await;
    fs::create_dir_all(on_host(&device, "mnt/boot")).unwrap();
    let config = r#"{"uuid":"kept","hostname":"old"}"#;
    fs::write(on_host(&device, "mnt/boot/config.json"), config).unwrap();
    set(
        &device,
        json!({ "hostname": "gate-7", "proxy": proxy(), "dns": "9.9.9.9:5353" }),
    )
    .await;
    let expected = json!({
        "proxy": {
            "ip": "10.2.2.2", "port": "1080", "type": "socks5", "noProxy": ["10.0.0.0/8"],
            "dns": "9.9.9.9:5353"
        },
        "hostname": "gate-7",
        "dns": "9.9.9.9:5353"
    });
    assert_eq!(network(&device).await, expected);
    assert_eq!(read(&device, "etc/hostname").unwrap(), "gate-7\n");
    let config = read(&device, "mnt/boot/config.json").unwrap();
    let config: Value = serde_json::from_str(&config).unwrap();
    assert_eq!(config, json!({ "uuid": "kept", "hostname": "gate-7" }));
    assert_eq!(
        read(&device, "mnt/boot/system-proxy/redsocks.conf").unwrap(),
        "base {\n\tlog_debug = off;\n\tlog_info = on;\n\tlog = stderr;\n\tdaemon = off;\n\
         \tredirector = iptables;\n}\n\n\
         redsocks {\n\ttype = socks5;\n\tip = 10.2.2.2;\n\tport = 1080;\n\
         \tlocal_ip = 127.0.0.1;\n\tlocal_port = 12345;\n}\n\n\
         dnsu2t {\n\tremote_ip = 9.9.9.9;\n\tremote_port = 5353;\n\
         \tlocal_ip = 127.0.0.1;\n\tlocal_port = 53;\n}\n"
    );
    let no_proxy = read(&device, "mnt/boot/system-proxy/no_proxy");
    assert_eq!(no_proxy.as_deref(), Some("10.0.0.0/8\n"));

    set(&device, json!({ "hostname": null, "proxy": {} })).await;
    let name = network(&device).await["hostname"].clone();
    let name = name.as_str().unwrap().to_owned();
    assert_eq!(network(&device).await, json!({ "hostname": name }));
    assert_eq!(name.len(), 7, "the beginning of the device's uuid");
    assert_eq!(read(&device, "mnt/boot/system-proxy/redsocks.conf"), None);
}

#[tokio::test]
async fn a_request_without_a_key_or_with_a_wrong_value_changes_nothing() {
    let device = Supervisor::on_wasm().start().await;
    set(&device, json!({ "hostname": "gate" })).await;
    for method in ["GET", "PATCH"] {
        let request = device.request_without_key(method, PATH);
        let answer = device.send(request.json(&json!({ "network": {} }))).await;
        assert_eq!((answer.status, answer.text.as_str()), (401, "Unauthorized"));
    }
    let (status, text) = patched(&device, json!({ "hostname": "x", "proxy": { "port": 0 } })).await;
    assert_eq!(status, 400);
    assert!(text.starts_with("'network.proxy.port' is '0'"), "{text}");
    let answer = device.send(device.request("POST", PATH)).await;
    assert_eq!(
        (answer.status, answer.allow.as_deref()),
        (405, Some("GET, HEAD, PATCH"))
    );
    assert_eq!(network(&device).await, json!({ "hostname": "gate" }));
}

/// A cloud's proxy in front of the device accepts these characters, and answers 500 to any other.
#[tokio::test]
async fn conformance3_refusals_are_written_in_the_characters_that_a_clouds_proxy_lets_through() {
    let device = Supervisor::on_wasm().start().await;
    let is_safe = |text: &str| {
        let mut characters = text.chars();
        characters.all(|c| c.is_ascii_alphanumeric() || " \n:'.?!,/-".contains(c))
    };
    for network in [
        json!("text"),
        json!({ "hostname": 5 }),
        json!({ "hostname": "under_score {and} [more] (of) \"it\"; ü…" }),
        json!({ "proxy": "text" }),
        json!({ "proxy": { "type": "http" } }),
        json!({ "proxy": { "type": "socks5", "ip": "10.0.0.1", "port": "x" } }),
        json!({ "proxy": { "noProxy": ["10.0.0.0/8", "x"] } }),
        json!({ "proxy": { "dns": 5 } }),
        json!({ "dns": "10.0.0.1" }),
        json!({ "proxy": { "ip": "10.0.0.1" } }),
        json!({ "proxy": { "password": 5 } }),
    ] {
        let (status, text) = patched(&device, network.clone()).await;
        assert_eq!(status, 400, "{network}: {text}");
        assert!(is_safe(&text), "{network}: {text}");
    }
    let answer = device.send(device.request("PATCH", PATH)).await;
    assert_eq!(answer.status, 400);
    assert!(is_safe(&answer.text), "{answer:?}");
}

#[tokio::test]
async fn a_lock_that_a_running_service_holds_is_respected_and_overridden_by_force() {
    let device = Supervisor::on_wasm().start().await;
    let lock = "/tmp/platform/updates.lock";
    let command = json!({ "command": ["write-and-wait", lock, "mine"] });
    let holder = service("holder", &guest("guest"), &command);
    let other = service("other", &guest("guest"), &json!({ "command": ["wait"] }));
    let mut target = target(7, &[holder, other]);
    device.set_target(&target).await;
    device.until_applied().await;
    let locks = on_host(&device, "tmp/platform-supervisor/services/7");
    let held = locks.join("holder/updates.lock");
    tests::until("the service to hold its lock", || async {
        if held.exists() { Ok(()) } else { Err(()) }
    })
    .await;

    let refused = "Lockfile exists for appId: 7, service: holder";
    for network in [json!({ "hostname": "x" }), json!({ "proxy": proxy() })] {
        assert_eq!(patched(&device, network).await, (423, refused.to_owned()));
    }
    set(&device, json!({})).await;
    assert!(held.exists());
    assert!(!locks.join("other/updates.lock").exists(), "all or none");
    assert_eq!(read(&device, "mnt/boot/system-proxy/redsocks.conf"), None);

    set(&device, json!({ "hostname": "forced", "force": true })).await;
    assert_eq!(network(&device).await["hostname"], "forced");
    assert!(!held.exists(), "the lock is gone for good");
    assert!(!locks.join("other/updates.lock").exists());

    fs::write(&held, "mine again").unwrap();
    let answer = patch(
        &device,
        &json!({ "network": { "hostname": "x" }, "force": "no" }),
    )
    .await;
    assert_eq!(answer.status, 423);
    let answer = patch(
        &device,
        &json!({ "network": { "hostname": "y" }, "force": 1 }),
    )
    .await;
    assert_eq!(answer.status, 200);

    // A lock that was taken through the API has the same effect as a file.
    let leased = "/v3/locks/7/other";
    let wish = json!({ "reason": "writes flash", "ttl": 600 });
    let answer = device.send(device.request("PUT", leased).json(&wish)).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    let refused = "Lockfile exists for appId: 7, service: other".to_owned();
    let named = json!({ "hostname": "z" });
    assert_eq!(patched(&device, named).await, (423, refused));
    set(&device, json!({ "hostname": "z", "force": true })).await;
    let given = device.send(device.request("DELETE", leased)).await;
    assert_eq!(given.status, 404, "it was overridden: {given:?}");

    // The device's configuration overrides every lock.
    target["local"]["config"] = json!({ "SUPERVISOR_OVERRIDE_LOCK": "1" });
    device.set_target(&target).await;
    device.until_applied().await;
    fs::write(&held, "mine once more").unwrap();
    set(&device, json!({ "hostname": "overridden" })).await;
    assert!(!held.exists());
}

#[tokio::test]
async fn requests_at_the_same_time_are_put_in_order() {
    let device = Supervisor::on_wasm().start().await;
    let names: Vec<String> = (0..8).map(|number| format!("gate-{number}")).collect();
    let requests = names.iter().enumerate().map(|(number, name)| {
        let proxy = json!({ "type": "socks4", "ip": format!("10.0.0.{number}"), "port": 1 });
        set(&device, json!({ "hostname": name, "proxy": proxy }))
    });
    futures::future::join_all(requests).await;
    let network = network(&device).await;
    let last = network["hostname"].as_str().unwrap();
    let number = last.strip_prefix("gate-").unwrap();
    assert_eq!(network["proxy"]["ip"], format!("10.0.0.{number}"));
}

#[tokio::test]
async fn the_system_gets_the_name_and_restarts_the_readers_of_the_proxy() {
    let Some(bus) = SystemBus::start().await else {
        return;
    };
    let device = Supervisor::on_wasm()
        .argument("--host-actions")
        .argument("dbus")
        .argument("--dbus-address")
        .argument(bus.address())
        .start()
        .await;
    let units = ["platform-proxy-config.service", "redsocks.service"];
    for unit in units {
        bus.set_unit(unit, "loaded", "active", "running").await;
    }
    set(&device, json!({ "hostname": "gate-8" })).await;
    set(&device, json!({ "proxy": proxy() })).await;
    let expected = |calls: &[String], call: &str| calls.iter().filter(|c| *c == call).count();
    let calls = bus.calls();
    assert_eq!(expected(&calls, r#"SetStaticHostname "gate-8" False"#), 1);
    let restarts = units.map(|unit| format!("RestartUnit \"{unit}\" \"replace\""));
    let restarted: Vec<_> = calls
        .iter()
        .filter(|call| call.starts_with("RestartUnit"))
        .collect();
    assert_eq!(restarted, restarts.iter().collect::<Vec<_>>());

    // A host that watches the files restarts the services itself.
    bus.set_unit("redsocks-conf.target", "loaded", "active", "active")
        .await;
    set(&device, json!({ "proxy": null })).await;
    let restarts = bus.calls();
    let restarts = restarts.iter().filter(|c| c.starts_with("RestartUnit"));
    assert_eq!(restarts.count(), 2);
}

#[tokio::test]
async fn a_host_that_does_not_answer_is_reported_as_text_and_the_name_stays_unchanged() {
    let device = Supervisor::on_wasm()
        .argument("--host-actions")
        .argument("dbus")
        .start()
        .await;
    let (status, text) = patched(&device, json!({ "hostname": "gate" })).await;
    assert_eq!(status, 503, "{text}");
    assert!(text.contains("cannot be reached"), "{text}");
    assert_eq!(
        read(&device, "mnt/boot/config.json").unwrap_or_default(),
        "{}\n"
    );
}
