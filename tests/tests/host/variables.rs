//! The variables `SUPERVISOR_...` of a target: what is reported about invalid ones, and the effect of the others
//! (docs/spec/device.md#config-variables).

use std::fs;

use serde_json::{Value, json};
use tests::{RecordedCloud, Supervisor, SystemBus, guest, service, target, until};

fn with_config(config: Value) -> Value {
    let mut target = target(7, &[]);
    target["local"]["config"] = config;
    target
}

#[tokio::test]
async fn invalid_variables_are_reported_and_the_others_apply() {
    let device = Supervisor::on_wasm().start().await;
    let config = json!({
        "SUPERVISOR_POLL_INTERVAL": "soon",
        "SUPERVISOR_DELTA_VERSION": "9",
        "SUPERVISOR_VPN_CONTROL": "perhaps",
        "SUPERVISOR_LOCAL_MODE": "perhaps",
        "SUPERVISOR_LOG_CONTROL": "off",
        "SUPERVISOR_UNKNOWN": "x",
    });
    let set = device.set_target(&with_config(config.clone())).await;
    let expected = [
        "`SUPERVISOR_DELTA_VERSION` is `9`, which is not from 2 to 3: `3` is used instead",
        "`SUPERVISOR_LOCAL_MODE` is `perhaps`, which is not `true` or `false`: `false` is used instead",
        "`SUPERVISOR_POLL_INTERVAL` is `soon`, which is not a whole number: `900000` is used instead",
        "`SUPERVISOR_VPN_CONTROL` is `perhaps`, which is not `true` or `false`: `true` is used instead",
    ];
    assert_eq!(set.json()["warnings"], json!(expected));
    let shown = device.json("/v2/local/target-state").await;
    let shown = &shown["state"]["local"]["config"];
    assert_eq!(shown["SUPERVISOR_POLL_INTERVAL"], "soon", "as it was set");
    assert_eq!(shown["SUPERVISOR_LOG_CONTROL"], "off");
    assert_eq!(shown["SUPERVISOR_HARDWARE_METRICS"], "true", "the default");
    assert_eq!(shown["SUPERVISOR_UNKNOWN"], Value::Null);

    let set = device.set_target(&with_config(json!({}))).await;
    assert!(set.json().get("warnings").is_none());
}

#[tokio::test]
async fn programs_of_the_host_find_a_copy_of_the_variables() {
    let device = Supervisor::on_wasm().start().await;
    let path = device
        .host_root()
        .join("run/supervisor/target-state-config");
    let config = json!({ "PLATFORM_SUPERVISOR_DELTA": "1", "HOST_SPLASH_image": "x" });
    device.set_target(&with_config(config)).await;
    until("the copy to be written", || async {
        let copy = fs::read(&path).unwrap_or_default();
        let copy: Value = serde_json::from_slice(&copy).unwrap_or_default();
        let expected = json!({ "SUPERVISOR_DELTA": "1", "HOST_SPLASH_image": "x" });
        if copy == expected { Ok(()) } else { Err(copy) }
    })
    .await;
}

#[tokio::test]
async fn with_deltas_full_images_are_downloaded_and_one_line_says_so() {
    let device = Supervisor::on_wasm().start().await;
    let wait = json!({ "command": ["wait"] });
    let services = [
        service("one", &guest("guest"), &wait),
        service("two", &guest("guest"), &wait),
    ];
    let mut target = target(7, &services);
    target["local"]["config"] = json!({ "SUPERVISOR_DELTA": "true" });
    device.set_target(&target).await;
    device.until_applied().await;
    let warnings = device.log().matches("always downloads full images").count();
    assert_eq!(warnings, 1, "{}", device.log());
}

#[tokio::test]
async fn the_vpn_is_switched_off_by_its_variable_and_seen_so() {
    let Some(bus) = SystemBus::start().await else {
        return;
    };
    bus.set_unit("openvpn.service", "loaded", "active", "running")
        .await;
    let cloud = RecordedCloud::start(&guest("guest")).await;
    cloud.change(|device| device["config"] = json!({ "PLATFORM_SUPERVISOR_VPN_CONTROL": "0" }));
    let device = Supervisor::on_wasm()
        .argument("--host-actions")
        .argument("dbus")
        .argument("--dbus-address")
        .argument(bus.address())
        .config_json(cloud.config_json())
        .start()
        .await;
    until("the VPN to be off", || async {
        let vpn = device.json("/v2/device/vpn").await;
        if vpn["vpn"]["enabled"] == false {
            Ok(())
        } else {
            Err(vpn)
        }
    })
    .await;
    let switched: Vec<_> = bus
        .calls()
        .into_iter()
        .filter(|call| call.contains("openvpn"))
        .collect();
    assert_eq!(switched, [r#"StopUnit "openvpn.service" "replace""#]);
}

#[tokio::test]
async fn the_vpn_of_a_device_without_a_cloud_is_left_as_it_is() {
    let Some(bus) = SystemBus::start().await else {
        return;
    };
    bus.set_unit("openvpn.service", "loaded", "active", "running")
        .await;
    let device = Supervisor::on_wasm()
        .argument("--host-actions")
        .argument("dbus")
        .argument("--dbus-address")
        .argument(bus.address())
        .start()
        .await;
    let config = json!({ "SUPERVISOR_VPN_CONTROL": "false" });
    device.set_target(&with_config(config)).await;
    device.until_applied().await;
    let vpn = device.json("/v2/device/vpn").await;
    assert_eq!(vpn["vpn"]["enabled"], true);
}

#[tokio::test]
async fn a_cloud_that_nobody_listens_at_is_part_of_the_devices_health() {
    let cloud = RecordedCloud::start(&guest("guest")).await;
    let config = cloud.config_json();
    drop(cloud);
    let device = Supervisor::on_wasm().config_json(config).start().await;
    until("the device to be unhealthy", || async {
        let answer = device.get("/v1/healthy").await;
        if answer.status == 500 {
            Ok(())
        } else {
            Err(device.log())
        }
    })
    .await;
    assert!(
        device.log().contains("cannot be reached"),
        "{}",
        device.log()
    );
}
