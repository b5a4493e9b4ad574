//! `HOST_FIREWALL_MODE` on a running supervisor, in a network of its own. These tests need root, `ip` and `nft`, and do
//! nothing without them.

use std::process::Command;

use serde_json::{Value, json};
use tests::{NetworkNamespace, Supervisor, guest, service, target, until};

fn with_mode(mode: &str, services: &[Value]) -> Value {
    let mut target = target(7, services);
    target["local"]["config"] = json!({ "HOST_FIREWALL_MODE": mode });
    target
}

/// Returns the supervisor's table in the network of this thread, as `nft` shows it.
fn table() -> Option<String> {
    let list = ["list", "table", "inet", "supervisor"];
    let listed = Command::new("nft").args(list).output().unwrap();
    let text = String::from_utf8(listed.stdout).unwrap();
    listed.status.success().then_some(text)
}

async fn until_it_has(device: &Supervisor, what: &str) {
    until("the firewall", || async {
        match table() {
            Some(text) if text.contains(what) => Ok(()),
            other => Err((other, device.log())),
        }
    })
    .await;
}

async fn until_it_is_gone(device: &Supervisor) {
    until("the firewall to go", || async {
        table().map_or(Ok(()), |text| Err((text, device.log())))
    })
    .await;
}

async fn modes() {
    let mut device = Supervisor::on_wasm()
        // The system bus is not used here, and there is none.
        .argument("--host-actions")
        .argument("dbus")
        .start()
        .await;
    let on_host = json!({ "network_mode": "host", "command": ["tick"] });
    let published = json!({ "ports": ["18080:80"], "command": ["tick"] });
    let web = service("web", &guest("guest"), &published);

    device
        .set_target(&with_mode("on", std::slice::from_ref(&web)))
        .await;
    until_it_has(&device, "tcp dport 18080 accept").await;
    assert!(table().unwrap().contains("reject with icmpx"));
    device.set_target(&with_mode("off", &[])).await;
    until_it_is_gone(&device).await;

    // Only while a service uses the host's network.
    device.set_target(&with_mode("auto", &[web])).await;
    device.until_applied().await;
    assert_eq!(table(), None);
    let host = service("host", &guest("guest"), &on_host);
    device.set_target(&with_mode("auto", &[host])).await;
    until_it_has(&device, "reject").await;

    // A table left by a killed supervisor is replaced, and a supervisor that ends leaves none.
    device.kill().await;
    assert!(table().is_some());
    device.start_again().await;
    until_it_has(&device, "reject").await;
    assert!(device.terminate().await.success());
    assert_eq!(table(), None, "{}", device.log());
}

#[test]
fn the_host_has_the_firewall_that_its_target_asks_for() {
    let Some(network) = NetworkNamespace::make(&["nft"]) else {
        return;
    };
    // The supervisor and the requests to it are all in that network.
    network.inside(|| {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build();
        runtime.unwrap().block_on(modes());
    });
}
