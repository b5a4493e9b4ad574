//! How a device registers with its cloud.

use serde_json::{Value, json};
use tests::{
    CloudBehaviour, DEVICE, PROVISIONING_KEY, RecordedCloud, RecordedRequest, Supervisor, guest,
    services_of, until,
};

const COMMIT: &str = "0c1d2e3f405162738495a6b7c8d9e0f1";

fn config_of(device: &Supervisor) -> Value {
    let file = device.host_root().join("mnt/boot/config.json");
    serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap()
}

async fn until_runs(device: &Supervisor) {
    until("the release to run", || async {
        let status = device.json("/v2/state/status").await;
        if status["release"] == COMMIT && status["appState"] == "applied" {
            Ok(())
        } else {
            Err((status, device.log()))
        }
    })
    .await;
}

fn requests_to(cloud: &RecordedCloud, path: &str) -> Vec<RecordedRequest> {
    let requests = cloud.requests().into_iter();
    requests
        .filter(|request| request.path.split('?').next() == Some(path))
        .collect()
}

async fn until_requested(cloud: &RecordedCloud, path: &str, count: usize) -> Vec<RecordedRequest> {
    until("requests", || async {
        let found = requests_to(cloud, path);
        if found.len() >= count {
            Ok(found)
        } else {
            Err((path.to_owned(), found.len()))
        }
    })
    .await
}

#[tokio::test]
async fn a_new_device_registers_and_follows_its_fleet() {
    let cloud = RecordedCloud::start(&guest("guest")).await;
    let mut config = cloud.new_config_json();
    config["initialDeviceName"] = json!("roof");
    config["persistentLogging"] = json!(true);
    let device = Supervisor::on_wasm()
        .config_json(config)
        .host_file(
            "etc/os-release",
            "PRETTY_NAME=\"Some OS 1.2\"\nVERSION_ID=1.2\n",
        )
        .start()
        .await;
    until_runs(&device).await;
    let config = config_of(&device);
    assert_eq!(config["deviceId"], 7);
    assert!(config["registered_at"].as_u64().unwrap() > 0);
    assert_eq!(config.get("apiKey"), None);
    let (uuid, key) = cloud.device();
    assert_eq!(
        (&config["uuid"], &config["deviceApiKey"]),
        (&json!(uuid), &json!(key))
    );
    let registered = requests_to(&cloud, "/device/register");
    assert_eq!(registered.len(), 1);
    let body: Value = serde_json::from_str(&registered[0].body).unwrap();
    assert_eq!(
        (
            &body["application"],
            &body["device_type"],
            &body["supervisor_version"]
        ),
        (&json!(4), &json!("board"), &json!("19.0.0"))
    );
    let named = &requests_to(&cloud, "/v7/device(7)")[0];
    assert_eq!(named.body, r#"{"device_name":"roof"}"#);
    let set = &requests_to(&cloud, "/v7/device_config_variable")[0];
    let expected =
        json!({ "device": 7, "name": "PLATFORM_SUPERVISOR_PERSISTENT_LOGGING", "value": "true" });
    assert_eq!(set.body, expected.to_string());
    assert_eq!(device.get("/v2/device/tags").await.status, 200);
    let log = device.log();
    assert!(
        !log.contains(&key) && !log.contains(PROVISIONING_KEY),
        "a key is in the log"
    );
}

#[tokio::test]
async fn a_device_that_is_killed_while_it_registers_is_the_same_one_afterwards() {
    let mut cloud = RecordedCloud::start(&guest("guest")).await;
    cloud.behave(CloudBehaviour::Stalls);
    let config = cloud.new_config_json();
    let mut device = Supervisor::on_wasm().config_json(config).start().await;
    let first = &until_requested(&cloud, "/device/register", 1).await[0]
        .body
        .clone();
    device.kill().await;
    // The cloud had registered it, and the device never received the answer.
    let body: Value = serde_json::from_str(first).unwrap();
    let field = |key: &str| body[key].as_str().unwrap().to_owned();
    cloud.know(&field("uuid"), &field("api_key"));
    cloud.go();
    device.start_again().await;
    assert_eq!(device.get("/ping").await.status, 200);
    cloud.behave(CloudBehaviour::Refuses(503, None));
    cloud.come_back().await;
    until_requested(&cloud, "/device/register", 2).await;
    cloud.behave(CloudBehaviour::Works);
    until_runs(&device).await;
    for again in requests_to(&cloud, "/device/register") {
        assert_eq!(again.body, *first);
    }
    assert_eq!(config_of(&device)["uuid"], field("uuid"));
    // The target was not requested before the device was registered.
    assert!(cloud.polls().iter().all(|poll| poll.status == 200));

    let before = cloud.polls().len();
    device.kill().await;
    device.start_again().await;
    cloud.until_polls(before + 1).await;
    assert_eq!(
        requests_to(&cloud, "/v7/device").len(),
        1,
        "it is not looked up again"
    );
}

#[tokio::test]
async fn a_device_whose_uuid_is_anothers_goes_on_as_a_new_one() {
    let cloud = RecordedCloud::start(&guest("guest")).await;
    let mut config = cloud.new_config_json();
    config["uuid"] = json!(DEVICE);
    let device = Supervisor::on_wasm().config_json(config).start().await;
    until("a registration", || async {
        let (uuid, _) = cloud.device();
        if uuid != DEVICE {
            Ok(())
        } else {
            Err(device.log())
        }
    })
    .await;
    let (uuid, _) = cloud.device();
    let polls = cloud.until_polls(1).await;
    assert_eq!(polls[0].path, format!("/device/v3/{uuid}/state"));
    assert_eq!(polls[0].status, 200);
    until("its service to run", || async {
        match services_of(device.state_dir()).len() {
            1 => Ok(()),
            other => Err((other, device.log())),
        }
    })
    .await;
    assert_eq!(config_of(&device)["uuid"], uuid);
    let log = device.log();
    assert!(log.contains("has a new identity"), "{log}");
}

#[tokio::test]
async fn a_device_that_becomes_another_one_takes_its_services_over() {
    let cloud = RecordedCloud::start(&guest("guest")).await;
    cloud.release("c2", |service| {
        service["composition"]["volumes"] = json!(["data:/data"]);
        service["composition"]["command"] = json!(["count-starts", "/data/starts"]);
    });
    let config = cloud.new_config_json();
    let mut device = Supervisor::on_wasm().config_json(config).start().await;
    until("the service to have started", || async {
        match starts(&device) {
            1 => Ok(()),
            other => Err((other, device.log())),
        }
    })
    .await;
    let before = services_of(device.state_dir());
    assert_eq!(before.len(), 1);

    // Deleted at the cloud, it has to join again, under another uuid.
    device.terminate().await;
    let mut config = cloud.new_config_json();
    config["uuid"] = json!("abcdefabcdefabcdefabcdefabcdefab");
    let file = device.host_root().join("mnt/boot/config.json");
    std::fs::write(file, config.to_string()).unwrap();
    device.start_again().await;
    // Its data is still there, and the service that ran before is not.
    until("the service to be recreated", || async {
        let after = services_of(device.state_dir());
        if after.len() == 1 && after != before && starts(&device) >= 2 {
            Ok(())
        } else {
            Err((after, starts(&device), device.log()))
        }
    })
    .await;
    assert_eq!(config_of(&device)["uuid"], config["uuid"]);
}

/// Returns how often the service has started, according to its volume.
fn starts(device: &Supervisor) -> usize {
    let file = device.state_dir().join("wasm/volumes/4_data/data/starts");
    let starts = std::fs::read_to_string(file).unwrap_or_default();
    starts.lines().count()
}
