//! Clouds that send endless, partial or completely wrong answers.

use serde_json::{Value, json};
use tests::{CloudBehaviour, DEVICE, RecordedCloud, Supervisor, guest, services_of, until};

const COMMIT: &str = "0c1d2e3f405162738495a6b7c8d9e0f1";
/// More than an accepted answer needs, and far less than these clouds send.
const MAX_GROWTH_KIB: u64 = 160 << 10;

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

/// Returns the maximum memory that the supervisor has used, in KiB.
fn peak(device: &Supervisor) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", device.pid())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.unwrap()
        .trim()
        .trim_end_matches(" kB")
        .parse()
        .unwrap()
}

fn hostile() -> Vec<CloudBehaviour> {
    let deep = "[".repeat(1_000_000).into_bytes();
    let of = |value: Value| CloudBehaviour::Sends(value.to_string().into_bytes());
    vec![
        CloudBehaviour::Endless,
        CloudBehaviour::Truncates,
        CloudBehaviour::Sends(deep),
        CloudBehaviour::Sends(Vec::new()),
        of(json!({ "d": "no rows", "id": "seven", "apps": 12 })),
        of(json!([[[]], { "id": -1 }, null])),
        of(json!({ DEVICE: { "name": 7, "config": [], "apps": "none" } })),
        of(json!({ DEVICE: { "name": "x", "config": { "PLATFORM_A": { "b": 1 } }, "apps": {} } })),
        CloudBehaviour::Refuses(401, Some("Sun, 06 Nov 2994 08:49:37 GMT".into())),
        CloudBehaviour::Refuses(302, None),
    ]
}

#[tokio::test]
async fn with_any_answer_of_the_cloud_services_run_memory_is_bounded_and_the_device_catches_up() {
    let cloud = RecordedCloud::start(&guest("guest")).await;
    let config = cloud.config_json();
    let device = Supervisor::on_wasm().config_json(config).start().await;
    until_runs(&device, COMMIT).await;
    let (container, before) = (device.json("/v2/containerId").await, peak(&device));
    for behaviour in hostile() {
        let polls = cloud.polls().len();
        cloud.behave(behaviour.clone());
        let update = device.post("/v1/update", &json!({ "force": true })).await;
        assert_eq!(update.status, 204);
        cloud.until_polls(polls + 1).await;
        let tags = device.get("/v2/device/tags").await;
        assert_eq!(tags.status, 500, "{behaviour:?}");
        assert_eq!(device.get("/ping").await.status, 200);
    }
    assert_eq!(device.json("/v2/containerId").await, container);
    assert_eq!(services_of(device.state_dir()).len(), 1);
    let grown = peak(&device).saturating_sub(before);
    assert!(grown < MAX_GROWTH_KIB, "{grown} KiB more than {before} KiB");

    cloud.behave(CloudBehaviour::Works);
    cloud.release("c2", |service| service["environment"]["A"] = json!("2"));
    assert_eq!(device.post("/v1/update", &json!({})).await.status, 204);
    until_runs(&device, "c2").await;
}

#[tokio::test]
async fn a_device_that_is_to_register_outlives_hostile_answers_and_registers_as_who_it_was() {
    let cloud = RecordedCloud::start(&guest("guest")).await;
    cloud.behave(CloudBehaviour::Refuses(500, None));
    let config = cloud.new_config_json();
    let device = Supervisor::on_wasm().config_json(config).start().await;
    let before = peak(&device);
    // A cloud that asks for no requests for years only gets a day: not waited for here.
    for behaviour in hostile().into_iter().take(8) {
        let before = cloud.requests().len();
        cloud.behave(behaviour);
        until("a registration that fails", || async {
            let requests = cloud.requests()[before..].to_vec();
            let tries = requests
                .iter()
                .filter(|request| request.path == "/device/register");
            if tries.count() >= 2 {
                Ok(())
            } else {
                Err(device.log())
            }
        })
        .await;
        assert_eq!(device.get("/ping").await.status, 200);
    }
    cloud.behave(CloudBehaviour::Works);
    until_runs(&device, COMMIT).await;
    let tries = cloud.requests().into_iter();
    let tries = tries.filter(|request| request.path == "/device/register");
    let mut bodies: Vec<String> = tries.map(|request| request.body).collect();
    bodies.dedup();
    assert_eq!(bodies.len(), 1, "it was the same device all the while");
    let grown = peak(&device).saturating_sub(before);
    assert!(grown < MAX_GROWTH_KIB, "{grown} KiB more than {before} KiB");
}
