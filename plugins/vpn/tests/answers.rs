#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;

use serde_json::json;
use supervisor_testing::{Host, build};

const POLICY: &str = r#"
    [plugins.vpn]
    grants = ["units", "files"]
    units = ["openvpn.service", "wireguard.service"]
    files = [{ host = "run/openvpn/vpn_status", guest = "/vpn-status", optional = true }]
"#;

fn host() -> Host {
    Host::new()
        .plugin(build(env!("CARGO_MANIFEST_DIR")))
        .policy(POLICY)
}

#[tokio::test]
async fn a_host_without_a_vpn_has_none_on_and_none_up() {
    let host = host().start().await;
    let answer = host.get("/v2/device/vpn").await;
    assert_eq!(answer.status, 200);
    let vpn = json!({ "enabled": false, "connected": false });
    assert_eq!(answer.json(), json!({ "status": "success", "vpn": vpn }));
}

#[tokio::test]
async fn the_tunnel_is_seen_to_go_up_and_down_also_where_the_folder_comes_late() {
    let host = host()
        .unit("openvpn.service", "loaded", "active", "running")
        .start()
        .await;
    let folder = host.root().join("run/openvpn/vpn_status");
    let connected = async || {
        let answer = host.get("/v2/device/vpn").await.json();
        assert_eq!(answer["vpn"]["enabled"], true);
        answer["vpn"]["connected"].as_bool().unwrap()
    };
    // Several times each, since instances are prepared in advance.
    for _ in 0..3 {
        for _ in 0..4 {
            assert!(!connected().await);
        }
        fs::create_dir_all(&folder).unwrap();
        assert!(!connected().await);
        fs::write(folder.join("active"), "").unwrap();
        for _ in 0..4 {
            assert!(connected().await);
        }
        fs::remove_dir_all(host.root().join("run")).unwrap();
    }
}

#[tokio::test]
async fn configuration_names_another_unit_and_the_policy_has_to_as_well() {
    let host_with = |unit: &str| {
        host()
            .configuration(format!("[plugins.vpn]\nunit = \"{unit}\""))
            .unit("wireguard.service", "loaded", "active", "running")
            .unit("ssh.service", "loaded", "active", "running")
            .start()
    };
    let answer = host_with("wireguard.service")
        .await
        .get("/v2/device/vpn")
        .await;
    assert_eq!(answer.json()["vpn"]["enabled"], true);
    let answer = host_with("ssh.service").await.get("/v2/device/vpn").await;
    assert_eq!(answer.status, 503);
    let message = answer.json()["message"].as_str().unwrap().to_owned();
    assert!(message.contains("`units` of `[plugins.vpn]`"), "{message}");
    assert!(message.contains("ssh.service"), "{message}");
}
