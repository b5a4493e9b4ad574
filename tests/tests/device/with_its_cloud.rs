//! A real device with the real cloud: it registers, runs the release of its fleet, reports it, and is reached.

use reqwest::Method;
use serde_json::{Value, json};
use tests::{FleetCloud, Supervisor, guest, until};

pub(crate) const BOARD: &str = "generic-amd64";

/// Returns the device's row at the cloud.
pub(crate) async fn known(cloud: &FleetCloud) -> Value {
    let rows = cloud
        .rows("/v7/device?$select=id,uuid,status,is_online,overall_status,is_running__release")
        .await;
    rows.first().cloned().unwrap_or_default()
}

/// Deploys a release of one service, which runs the program of the tests with these words.
pub(crate) fn deploy(cloud: &FleetCloud, version: &str, command: &[&str]) -> i64 {
    let folder = tempfile::tempdir().unwrap();
    std::fs::copy(guest("guest"), folder.path().join("guest.wasm")).unwrap();
    let compose = json!({ "services": { "main": {
        "image": "./guest.wasm", "command": command, "environment": { "VERSION": version },
        "stop_grace_period": "1s",
    } } });
    std::fs::write(folder.path().join("compose.yml"), compose.to_string()).unwrap();
    let words = [
        "deploy",
        "compose.yml",
        "--fleet",
        "pump",
        "--release-version",
        version,
        "--json",
    ];
    let output = cloud.command_line(folder.path(), &words);
    let made: Value = serde_json::from_slice(&output.stdout).unwrap();
    made["id"].as_i64().unwrap_or_else(|| panic!("{made}"))
}

pub(crate) async fn until_runs(cloud: &FleetCloud, device: &Supervisor, release: i64) {
    until("the cloud to know that the release runs", || async {
        let row = known(cloud).await;
        if row["is_running__release"]["__id"] == release && row["is_online"] == true {
            Ok(())
        } else {
            Err((row, device.log()))
        }
    })
    .await;
}

#[tokio::test]
async fn a_device_joins_a_fleet_follows_its_releases_and_is_reached_through_the_cloud() {
    let Ok(registry) = std::env::var("SUPERVISOR_TEST_REGISTRY") else {
        println!("SKIPPED: SUPERVISOR_TEST_REGISTRY is not set");
        return;
    };
    let cloud = FleetCloud::start(&registry).await;
    let fleet = cloud.fleet("pump", BOARD).await;
    let first = deploy(&cloud, "1.0.0", &["wait"]);
    let config = cloud.config_json(fleet, BOARD).await;
    let device = Supervisor::on_wasm().config_json(config).start().await;
    until_runs(&cloud, &device, first).await;

    // Through the tunnel, as a user with access.
    let row = known(&cloud).await;
    let ask = |url: &str, method: &str| {
        let body = json!({ "uuid": row["uuid"], "method": method });
        cloud
            .request(Method::POST, &format!("/supervisor{url}"))
            .json(&body)
    };
    assert_eq!(cloud.answer(ask("/ping", "GET")).await, json!("OK"));
    let answer = cloud.answer(ask("/v1/device", "GET")).await;
    assert_eq!(answer["status"], json!("Idle"), "{answer}");

    // A change arrives long before the device would poll by itself.
    let before = device.json("/v2/containerId").await;
    let service = cloud.rows("/v7/service_install?$select=id").await[0]["id"].clone();
    let variable = json!({ "service_install": service, "name": "COLOUR", "value": "blue" });
    let path = "/v7/device_service_environment_variable";
    cloud
        .answer(cloud.request(Method::POST, path).json(&variable))
        .await;
    until("the service to be recreated", || async {
        let now = device.json("/v2/containerId").await;
        let changed = now["services"]["main"].is_string()
            && now["services"]["main"] != before["services"]["main"];
        if changed {
            Ok(())
        } else {
            Err((now, device.log()))
        }
    })
    .await;

    // The next release, and back.
    let second = deploy(&cloud, "2.0.0", &["wait"]);
    until_runs(&cloud, &device, second).await;
    let pin = json!({ "is_pinned_on__release": first });
    let path = format!("/v7/device({})", row["id"]);
    cloud
        .answer(cloud.request(Method::PATCH, &path).json(&pin))
        .await;
    until_runs(&cloud, &device, first).await;
}
