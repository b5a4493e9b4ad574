//! The output of services at the cloud.

use serde_json::{Value, json};
use tests::{DEVICE_KEY, RecordedCloud, Supervisor, guest, until};

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
        if status["release"] == commit && status["appState"] == "applied" {
            Ok(())
        } else {
            Err((status, device.log()))
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
    // Waiting lines survive the supervisor.
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

/// Returns the numbers of the ticks that the cloud has, in their order.
fn ticks(cloud: &RecordedCloud) -> Vec<u64> {
    let logs = cloud.logs();
    let ticks = logs
        .iter()
        .filter_map(|line| line["message"].as_str()?.strip_prefix("tick "));
    ticks.map(|number| number.parse().unwrap()).collect()
}

async fn until_ticked(cloud: &RecordedCloud, device: &Supervisor, number: u64) -> Vec<u64> {
    until("a tick", || async {
        let ticks = ticks(cloud);
        if ticks.last().is_some_and(|last| *last >= number) {
            Ok(ticks)
        } else {
            Err((ticks, device.log()))
        }
    })
    .await
}

/// A service that counts keeps running while the supervisor is down.
async fn nothing_is_missing_and_nothing_comes_twice(
    cloud: &RecordedCloud,
    device: &mut Supervisor,
) {
    let ticks = until_ticked(cloud, device, 5).await;
    device.terminate().await;
    // Long enough that there are lines to catch up on: the cloud's clock is the service's.
    let down = std::time::Instant::now();
    until("the service to have gone on", || async {
        if down.elapsed() > std::time::Duration::from_millis(1500) {
            Ok(())
        } else {
            Err(())
        }
    })
    .await;
    device.start_again().await;
    let last = ticks.last().unwrap() + 40;
    let ticks = until_ticked(cloud, device, last).await;
    let expected: Vec<u64> = (0..ticks.len() as u64).collect();
    assert_eq!(ticks, expected, "{}", device.log());
}

#[tokio::test]
async fn component_output_from_while_the_supervisor_was_down_arrives_after_its_start() {
    let cloud = RecordedCloud::start(&guest("guest")).await;
    cloud.release("c2", |service| {
        service["composition"]["command"] = json!(["tick"]);
    });
    let mut device = device_of(&cloud).await;
    nothing_is_missing_and_nothing_comes_twice(&cloud, &mut device).await;
}

#[tokio::test]
async fn container_output_from_while_the_supervisor_was_down_arrives_after_its_start() {
    let Some(builder) = Supervisor::on_docker() else {
        return;
    };
    let registry = std::env::var("SUPERVISOR_TEST_REGISTRY").unwrap();
    let cloud = RecordedCloud::start(&guest("guest")).await;
    let count = "i=0; while true; do echo tick $i; i=$((i + 1)); sleep 0.1; done";
    cloud.release("c0ffee77", |service| {
        service["image"] = json!(format!("{registry}/busybox:latest"));
        service["composition"] =
            json!({ "command": ["sh", "-c", count], "stop_signal": "SIGKILL" });
    });
    // The engine is shared with other tests.
    let uuid = format!("{:032x}", 0x1065_0000_u64 + u64::from(std::process::id()));
    let mut config = cloud.config_json();
    config["uuid"] = json!(uuid);
    cloud.know(&uuid, DEVICE_KEY);
    let mut device = builder.config_json(config).start().await;
    nothing_is_missing_and_nothing_comes_twice(&cloud, &mut device).await;
    cloud.change(|device| device["apps"] = json!({}));
    device.post("/v1/update", &json!({})).await;
    until("the container to be gone", || async {
        let status = device.json("/v2/state/status").await;
        if status["containers"] == json!([]) {
            Ok(())
        } else {
            Err(status)
        }
    })
    .await;
}
