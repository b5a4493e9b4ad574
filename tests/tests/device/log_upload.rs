//! What services print, at the cloud.

use serde_json::{Value, json};
use tests::{RecordedCloud, Supervisor, guest, until};

async fn device_of(cloud: &RecordedCloud) -> Supervisor {
    let config = cloud.config_json();
    Supervisor::on_wasm().config_json(config).start().await
}

fn print(text: &str) -> impl FnOnce(&mut Value) {
    move |service| service["composition"]["command"] = json!(["print-and-wait", text])
}

async fn until_runs(device: &Supervisor, commit: &str) {
    until("the release to run", || async {
        let status = device.json("/v2/state/status").await;
        match status["release"] == commit && status["appState"] == "applied" {
            true => Ok(()),
            false => Err((status, device.log())),
        }
    })
    .await;
}

fn messages(logs: &[Value]) -> Vec<&str> {
    logs.iter()
        .filter_map(|line| line["message"].as_str())
        .collect()
}

#[tokio::test]
async fn lines_say_which_service_printed_them_and_nobody_who_does_not_want_them_gets_them() {
    let cloud = RecordedCloud::start(&guest("guest")).await;
    let device = device_of(&cloud).await;
    let logs = cloud.until_logged("pumping").await;
    let printed = logs
        .iter()
        .find(|line| line["message"] == "pumping")
        .unwrap();
    assert_eq!(printed["serviceId"], 21);
    assert_eq!(printed.get("isSystem"), None);
    assert!(printed["timestamp"].as_i64().unwrap() > 1_600_000_000_000);
    let own = logs.iter().find(|line| line["isSystem"] == true).unwrap();
    assert_eq!(own.get("serviceId"), None);

    let control = |on: &str| json!({ "PLATFORM_SUPERVISOR_LOG_CONTROL": on });
    cloud.change(|device| device["config"] = control("false"));
    cloud.release("c2", print("unwanted"));
    device.post("/v1/update", &json!({})).await;
    until_runs(&device, "c2").await;
    cloud.change(|device| device["config"] = control("true"));
    cloud.release("c3", print("wanted"));
    device.post("/v1/update", &json!({})).await;
    let logs = cloud.until_logged("wanted").await;
    assert!(!messages(&logs).contains(&"unwanted"), "{logs:?}");
}

#[tokio::test]
async fn lines_that_are_printed_while_the_cloud_is_away_come_when_it_is_back() {
    let mut cloud = RecordedCloud::start(&guest("guest")).await;
    let mut device = device_of(&cloud).await;
    cloud.until_logged("pumping").await;
    until_runs(&device, "0c1d2e3f405162738495a6b7c8d9e0f1").await;
    cloud.go();
    let before = cloud.logs().len();
    let main = json!({ "serviceName": "main" });
    let restarted = device
        .post("/v2/applications/4/restart-service", &main)
        .await;
    assert_eq!(restarted.status, 200);
    let folder = device.state_dir().join("logs-for-cloud");
    until("lines on the disk", || async {
        let names = std::fs::read_dir(&folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name());
        let names: Vec<_> = names
            .map(|name| name.to_string_lossy().into_owned())
            .collect();
        let waits = |name: &String| name.ends_with(".gz") || name.ends_with(".open");
        if names.iter().any(waits) {
            Ok(())
        } else {
            Err((names, device.log()))
        }
    })
    .await;
    // What waits outlives the supervisor.
    device.terminate().await;
    device.start_again().await;
    cloud.come_back().await;
    until("what happened meanwhile", || async {
        let logs = cloud.logs()[before..].to_vec();
        let came = messages(&logs).contains(&"Killed service 'main'");
        if came {
            Ok(())
        } else {
            Err((logs, device.log()))
        }
    })
    .await;
    cloud.release("c2", print("afterwards"));
    device.post("/v1/update", &json!({})).await;
    cloud.until_logged("afterwards").await;
}
