//! `GET /v2/device/vpn`.

use std::fs;

use serde_json::{Value, json};
use tests::{Supervisor, SystemBus, until};

fn vpn(enabled: bool, connected: bool) -> Value {
    json!({ "status": "success", "vpn": { "enabled": enabled, "connected": connected } })
}

#[tokio::test]
async fn the_vpn_is_on_by_its_unit_and_up_by_its_file() {
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
    let folder = device.host_root().join("run/openvpn/vpn_status");
    assert_eq!(device.json("/v2/device/vpn").await, vpn(false, false));
    for (active, enabled) in [
        ("active", true),
        ("activating", true),
        ("failed", true),
        ("deactivating", false),
        ("inactive", false),
    ] {
        bus.set_unit("openvpn.service", "loaded", active, "any")
            .await;
        assert_eq!(
            device.json("/v2/device/vpn").await,
            vpn(enabled, false),
            "{active}"
        );
    }
    bus.set_unit("openvpn.service", "loaded", "active", "running")
        .await;
    fs::create_dir_all(&folder).unwrap();
    assert_eq!(device.json("/v2/device/vpn").await, vpn(true, false));
    fs::write(folder.join("active"), "").unwrap();
    assert_eq!(device.json("/v2/device/vpn").await, vpn(true, true));
    fs::remove_file(folder.join("active")).unwrap();
    assert_eq!(device.json("/v2/device/vpn").await, vpn(true, false));
}

#[tokio::test]
async fn without_a_system_bus_the_vpns_state_is_not_known_until_it_is_there() {
    let Some(mut bus) = SystemBus::start().await else {
        return;
    };
    let address = bus.address();
    bus.stop();
    let device = Supervisor::on_wasm()
        .argument("--host-actions")
        .argument("dbus")
        .argument("--dbus-address")
        .argument(&address)
        .start()
        .await;
    let answer = device.get("/v2/device/vpn").await;
    assert_eq!(answer.status, 503);
    let body = answer.json();
    assert_eq!(body["status"], "failed");
    let message = body["message"].as_str().unwrap();
    assert!(
        message.contains("failed to read the state of the VPN"),
        "{message}"
    );
    assert!(message.contains(&address), "{message}");

    bus.restart().await;
    bus.set_unit("openvpn.service", "loaded", "active", "running")
        .await;
    until("the VPN's state to be known", || async {
        let answer = device.get("/v2/device/vpn").await;
        if answer.status == 200 {
            Ok(())
        } else {
            Err(answer)
        }
    })
    .await;
    assert_eq!(device.json("/v2/device/vpn").await, vpn(true, false));
}
