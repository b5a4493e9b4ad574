//! A device and its cloud: the target that it follows, how it handles a cloud that answers badly or not at all, local
//! mode at the same time, and tags.

use serde_json::{Value, json};
use tests::{
    CloudBehaviour, DEVICE, DEVICE_KEY, RecordedCloud, RecordedRequest, Supervisor, guest, service,
    services_of, target, until,
};

const COMMIT: &str = "0c1d2e3f405162738495a6b7c8d9e0f1";
const LOCAL_MODE: &str = "PLATFORM_SUPERVISOR_LOCAL_MODE";

/// A device that follows a recorded cloud and has reached its target.
async fn following() -> (RecordedCloud, Supervisor) {
    let cloud = RecordedCloud::start(&guest("guest")).await;
    let device = Supervisor::on_wasm()
        .config_json(cloud.config_json())
        .start()
        .await;
    until_runs(&device, COMMIT).await;
    (cloud, device)
}

async fn until_runs(device: &Supervisor, commit: &str) -> Value {
    until("the release to run", || async {
        let status = device.json("/v2/state/status").await;
        let runs = status["release"] == commit && status["appState"] == "applied";
        if runs {
            Ok(status)
        } else {
            Err((status, device.log()))
        }
    })
    .await
}

async fn update(device: &Supervisor, body: &Value) {
    let answer = device.post("/v1/update", body).await;
    assert_eq!((answer.status, answer.text.as_str()), (204, ""));
}

fn print(text: &str) -> impl FnOnce(&mut Value) {
    move |service| service["composition"]["command"] = json!(["print-and-wait", text])
}

#[tokio::test]
async fn a_device_follows_the_target_of_its_cloud() {
    let (cloud, device) = following().await;
    let state = device.json("/v2/applications/state").await;
    assert_eq!(state["pump"]["commit"], COMMIT);
    assert_eq!(state["pump"]["services"]["main"]["releaseId"], 77);
    let name = device.json("/v2/device/name").await;
    assert_eq!(
        name,
        json!({"status": "success", "deviceName": "calm-river"})
    );
    assert_eq!(device.get("/v1/healthy").await.status, 200);
    let local = device.json("/v2/local/target-state").await;
    assert_eq!(local["state"]["local"]["apps"], json!({}));
    let refused = device.post("/v2/local/target-state", &target(1, &[])).await;
    assert_eq!(refused.status, 400);

    let first = &cloud.until_polls(1).await[0];
    assert_eq!(first.path, format!("/device/v3/{DEVICE}/state"));
    assert_eq!(
        first.header("authorization"),
        format!("Bearer {DEVICE_KEY}")
    );
    assert_eq!(first.header("if-none-match"), "");
    let agent = first.header("user-agent");
    assert!(agent.starts_with("Supervisor/19.0.0 (Linux"), "{agent}");

    cloud.release("c2", print("changed"));
    cloud.change(|device| device["name"] = json!("loud-river"));
    update(&device, &json!({})).await;
    until_runs(&device, "c2").await;
    let name = device.json("/v2/device/name").await;
    assert_eq!(name["deviceName"], "loud-river");
}

#[tokio::test]
async fn the_etag_is_sent_and_an_unchanged_target_changes_nothing() {
    let (cloud, device) = following().await;
    let before = device.json("/v2/containerId").await;
    for count in 2..=4 {
        update(&device, &json!({})).await;
        cloud.until_polls(count).await;
    }
    let polls = cloud.polls();
    let statuses: Vec<u16> = polls.iter().map(|poll| poll.status).collect();
    assert_eq!(statuses, [200, 304, 304, 304]);
    assert!(polls[1].header("if-none-match").starts_with('"'));
    assert_eq!(device.json("/v2/containerId").await, before);
    assert_eq!(services_of(device.state_dir()).len(), 1);
}

fn gaps(polls: &[RecordedRequest]) -> Vec<u128> {
    let pairs = polls.windows(2);
    pairs
        .map(|pair| (pair[1].at - pair[0].at).as_millis())
        .collect()
}

#[tokio::test]
async fn a_cloud_that_refuses_is_asked_again_later_and_retry_after_is_kept_to() {
    let (cloud, mut device) = following().await;
    // The waits are limited by the poll interval.
    cloud.change(|device| {
        device["config"] = json!({ "PLATFORM_SUPERVISOR_POLL_INTERVAL": "1000" });
    });
    update(&device, &json!({})).await;
    until("the interval to be in force", || async {
        let config = device.json("/v2/local/target-state").await;
        let interval = config["state"]["local"]["config"]["SUPERVISOR_POLL_INTERVAL"].clone();
        if interval == "1000" {
            Ok(())
        } else {
            Err(interval)
        }
    })
    .await;
    cloud.behave(CloudBehaviour::Refuses(503, None));
    device.kill().await;
    let before = cloud.polls().len();
    device.start_again().await;
    let polls = cloud.until_polls(before + 3).await;
    for gap in gaps(&polls[before..]) {
        assert!(gap >= 900, "{gap} ms");
    }
    cloud.behave(CloudBehaviour::Refuses(429, Some("4".into())));
    let before = cloud.polls().len();
    let polls = cloud.until_polls(before + 2).await;
    let last = gaps(&polls[before..]);
    assert!(last[0] >= 3900, "{last:?}");
    // During that time the services kept running, and a cloud that works again is followed again.
    assert_eq!(
        device.json("/v2/state/status").await["containers"][0]["status"],
        "Running"
    );
    cloud.release("c2", print("changed"));
    cloud.behave(CloudBehaviour::Works);
    until_runs(&device, "c2").await;
}

#[tokio::test]
async fn hostile_answers_change_nothing_and_the_device_answers_all_the_while() {
    let (cloud, device) = following().await;
    let before = device.json("/v2/containerId").await;
    let deep = "[".repeat(200_000) + &"]".repeat(200_000);
    let many = format!("[{}0]", "0,".repeat(600_000));
    for (behaviour, message) in [
        (CloudBehaviour::Sends(b"<html>".to_vec()), "it is not JSON"),
        (CloudBehaviour::Sends(Vec::new()), "it is not JSON"),
        (CloudBehaviour::Sends(deep.into_bytes()), "recursion limit"),
        (CloudBehaviour::Sends(many.into_bytes()), "values"),
        (CloudBehaviour::Floods((16 << 20) + 1), "longer than 16 MiB"),
        (CloudBehaviour::Sends(b"{}".to_vec()), "the last one stays"),
        (
            CloudBehaviour::Sends(
                format!(r#"{{"{DEVICE}":{{"name":"x","config":{{}},"apps":{{"a":1}}}}}}"#).into(),
            ),
            "Invalid target state.",
        ),
        (CloudBehaviour::Refuses(401, None), "401 Unauthorized"),
        (CloudBehaviour::Refuses(418, Some("soon".into())), "418"),
    ] {
        let length = device.log().len();
        cloud.behave(behaviour.clone());
        update(&device, &json!({"force": true})).await;
        until("the log to say so", || async {
            let log = device.log()[length..].to_owned();
            if log.contains(message) {
                Ok(())
            } else {
                Err((message, log))
            }
        })
        .await;
        assert_eq!(device.get("/ping").await.status, 200);
    }
    assert_eq!(device.json("/v2/containerId").await, before);
    let log = device.log();
    assert!(!log.contains(DEVICE_KEY), "the key is in the log");
}

#[tokio::test]
async fn a_cloud_that_stalls_or_is_gone_leaves_the_services_running_and_the_api_answering() {
    let (mut cloud, mut device) = following().await;
    cloud.behave(CloudBehaviour::Stalls);
    update(&device, &json!({})).await;
    cloud.until_polls(2).await;
    // An update is pending while the cloud is being polled.
    until("an update to be pending", || async {
        let state = device.json("/v1/device").await;
        if state["update_pending"] == true {
            Ok(())
        } else {
            Err(state)
        }
    })
    .await;
    assert_eq!(device.terminate().await.code(), Some(0));

    cloud.go();
    cloud.behave(CloudBehaviour::Works);
    device.start_again().await;
    let status = until_runs(&device, COMMIT).await;
    assert_eq!(status["containers"][0]["status"], "Running");
    assert_eq!(
        device.json("/v2/device/name").await["deviceName"],
        "calm-river"
    );
    assert_eq!(device.get("/v2/device/tags").await.status, 500);

    cloud.release("c2", print("changed"));
    cloud.come_back().await;
    update(&device, &json!({})).await;
    until_runs(&device, "c2").await;
}

#[tokio::test]
async fn a_locked_update_waits_and_force_lets_it_through() {
    let (cloud, device) = following().await;
    let services = "tmp/platform-supervisor/services/4/main";
    let lock = device.host_root().join(services).join("updates.lock");
    std::fs::write(&lock, "").unwrap();
    cloud.release("c2", |service| service["environment"]["A"] = json!("2"));
    update(&device, &json!({})).await;
    until("the lock to be in the way", || async {
        let state = device.json("/v1/device").await;
        if state["update_failed"] == true {
            Ok(())
        } else {
            Err(state)
        }
    })
    .await;
    // The known target is applied again, now with force.
    update(&device, &json!({"force": "on"})).await;
    until_runs(&device, "c2").await;
    assert!(!lock.exists());
}

#[tokio::test]
async fn without_instant_updates_only_force_triggers() {
    let (cloud, device) = following().await;
    cloud.change(|device| {
        device["config"]["PLATFORM_SUPERVISOR_INSTANT_UPDATE_TRIGGER"] = json!("false");
    });
    update(&device, &json!({})).await;
    until("updates to be held back", || async {
        let answer = device.post("/v1/update", &json!({"force": false})).await;
        let held = (answer.status, answer.text.as_str()) == (202, "Accepted");
        if held { Ok(()) } else { Err(answer) }
    })
    .await;
    let before = cloud.polls().len();
    assert_eq!(device.post("/v1/update", &json!({})).await.status, 202);
    update(&device, &json!({"force": true})).await;
    cloud.until_polls(before + 1).await;
}

#[tokio::test]
async fn local_mode_is_entered_and_left_by_the_clouds_word() {
    let (cloud, device) = following().await;
    cloud.change(|device| device["config"][LOCAL_MODE] = json!("1"));
    update(&device, &json!({})).await;
    let dev = service(
        "dev",
        &guest("guest"),
        &json!({"command": ["print-and-wait", "dev"]}),
    );
    let local = target(9, &[dev]);
    until("local mode", || async {
        let answer = device.post("/v2/local/target-state", &local).await;
        if answer.status == 200 {
            Ok(())
        } else {
            Err(answer)
        }
    })
    .await;
    until_runs(&device, "commit1").await;
    let ids = device.json("/v2/containerId").await;
    assert_eq!(
        ids["services"]
            .as_object()
            .unwrap()
            .keys()
            .collect::<Vec<_>>(),
        ["dev"]
    );
    assert_eq!(device.json("/v2/device/name").await["deviceName"], "test");

    // Anything else from the cloud waits until local mode is over.
    cloud.release("c2", print("changed"));
    update(&device, &json!({})).await;
    cloud.until_polls(3).await;
    assert_eq!(device.json("/v2/containerId").await, ids);

    cloud.change(|device| device["config"] = json!({}));
    update(&device, &json!({})).await;
    until_runs(&device, "c2").await;
    let ids = device.json("/v2/containerId").await;
    assert_eq!(
        ids["services"]
            .as_object()
            .unwrap()
            .keys()
            .collect::<Vec<_>>(),
        ["main"]
    );
    assert_eq!(services_of(device.state_dir()).len(), 1);
    let left = device.json("/v2/local/target-state").await;
    assert_eq!(left["state"]["local"]["apps"], json!({}));
    assert_eq!(
        left["state"]["local"]["config"]["SUPERVISOR_LOCAL_MODE"],
        "false"
    );
}

#[tokio::test]
async fn a_new_device_writes_who_it_is_before_it_asks_anything() {
    let cloud = RecordedCloud::start(&guest("guest")).await;
    let mut config = cloud.config_json();
    for key in ["uuid", "deviceApiKey", "deviceId", "registered_at"] {
        config.as_object_mut().unwrap().remove(key);
    }
    config["kept"] = json!({"by": "others"});
    let mut device = Supervisor::on_wasm().config_json(config).start().await;
    let file = device.host_root().join("mnt/boot/config.json");
    let read = || -> Value { serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap() };
    let first = read();
    let uuid = first["uuid"].as_str().unwrap();
    assert_eq!(
        (uuid.len(), first["deviceApiKey"].as_str().unwrap().len()),
        (32, 32)
    );
    assert_eq!(first["kept"]["by"], "others");
    let poll = &cloud.until_polls(1).await[0];
    assert_eq!(poll.path, format!("/device/v3/{uuid}/state"));
    assert_eq!(
        poll.header("authorization"),
        format!("Bearer {}", first["deviceApiKey"].as_str().unwrap())
    );
    let tags = device.get("/v2/device/tags").await;
    assert_eq!(tags.status, 500);
    let message = tags.failure();
    assert_eq!(
        message.as_deref(),
        Some("Attempt to retrieve device tags before provision")
    );

    device.kill().await;
    device.start_again().await;
    assert_eq!(read(), first, "it is the same device again");
}

#[tokio::test]
async fn a_damaged_config_json_keeps_the_services_and_is_a_matter_of_health() {
    let (_cloud, mut device) = following().await;
    let file = device.host_root().join("mnt/boot/config.json");
    device.terminate().await;
    std::fs::write(&file, "{\"uuid\":").unwrap();
    device.start_again().await;
    until_runs(&device, COMMIT).await;
    assert_eq!(services_of(device.state_dir()).len(), 1);
    assert_eq!(device.get("/v1/healthy").await.status, 500);
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "{\"uuid\":");
}

#[tokio::test]
async fn health_misses_a_cloud_that_has_not_answered_for_two_intervals() {
    let (cloud, device) = following().await;
    cloud.change(|device| {
        device["config"] = json!({ "PLATFORM_SUPERVISOR_POLL_INTERVAL": "1000" });
    });
    update(&device, &json!({})).await;
    cloud.until_polls(2).await;
    cloud.behave(CloudBehaviour::Refuses(500, None));
    until("the device to be unhealthy", || async {
        let answer = device.get("/v1/healthy").await;
        if answer.status == 500 {
            Ok(())
        } else {
            Err(answer)
        }
    })
    .await;
    let log = device.log();
    assert!(log.contains("the cloud has not answered"), "{log}");
    cloud.behave(CloudBehaviour::Works);
    until("the device to be healthy again", || async {
        update(&device, &json!({})).await;
        let answer = device.get("/v1/healthy").await;
        if answer.status == 200 {
            Ok(())
        } else {
            Err(answer)
        }
    })
    .await;
}

#[tokio::test]
async fn tags_are_read_from_the_cloud_and_set_through_the_queue() {
    let (cloud, mut device) = following().await;
    let answer = device.get("/v2/device/tags").await;
    let tags = json!([
        {"id": 31, "name": "site", "value": "north"},
        {"id": 32, "name": "rack", "value": ""},
    ]);
    assert_eq!(answer.status, 200);
    assert_eq!(answer.json(), json!({"status": "success", "tags": tags}));

    // Set while the cloud is out of order, and sent after the next start.
    cloud.behave(CloudBehaviour::Refuses(500, None));
    assert_eq!(device.get("/v2/device/tags").await.status, 500);
    let patch = device
        .request("PATCH", "/v2/device/tags")
        .json(&json!({"site": "south"}));
    let answer = device.send(patch).await;
    assert_eq!(
        (answer.status, answer.json()),
        (202, json!({"status": "success"}))
    );
    device.kill().await;
    cloud.behave(CloudBehaviour::Works);
    device.start_again().await;
    let sent = until("the tags to be sent", || async {
        let requests = cloud.requests().into_iter();
        let mut sent =
            requests.filter(|request| request.path == "/device/v3/tags" && request.status == 200);
        sent.next().ok_or("nothing")
    })
    .await;
    assert_eq!(sent.path, "/device/v3/tags");
    let body: Value = serde_json::from_str(&sent.body).unwrap();
    assert_eq!(body, json!({ DEVICE: { "site": "south" } }));

    let refused = device
        .request("PATCH", "/v2/device/tags")
        .json(&json!({"a b": "c"}));
    assert_eq!(device.send(refused).await.status, 400);
}

#[tokio::test]
async fn a_device_without_a_cloud_has_no_tags_and_is_healthy() {
    let device = Supervisor::on_wasm().start().await;
    let answer = device.get("/v2/device/tags").await;
    assert_eq!(
        (answer.status, answer.failure().as_deref()),
        (500, Some("this device has no cloud"))
    );
    assert_eq!(device.get("/v1/healthy").await.status, 200);
    update(&device, &json!({"force": true, "cancel": true})).await;
}

#[tokio::test]
async fn the_supervisors_own_app_and_the_hosts_are_shown_and_never_run() {
    let (cloud, device) = following().await;
    cloud.change(|device| {
        let apps = device["apps"].as_object_mut().unwrap();
        let fleet = apps.values().next().unwrap().clone();
        for (id, uuid, name, is_host) in [
            (901, "supervisorapp", "aarch64-supervisor", false),
            (902, "hostapp", "raspberrypi4-64", true),
        ] {
            let mut app = fleet.clone();
            app["id"] = json!(id);
            app["name"] = json!(name);
            app["class"] = json!("app");
            app["is_host"] = json!(is_host);
            apps.insert(uuid.to_owned(), app);
        }
    });
    update(&device, &json!({})).await;
    let plan = until("the apps to be in the plan", || async {
        let plan = device.json("/v3/plan").await;
        let left = plan["unplanned"].as_array().unwrap().len();
        if left == 2 && plan["state"] == "settled" {
            Ok(plan)
        } else {
            Err(plan)
        }
    })
    .await;
    for left in plan["unplanned"].as_array().unwrap() {
        assert_eq!(left["blockedBy"][0]["kind"], "not-ours", "{plan}");
    }
    assert_eq!(services_of(device.state_dir()).len(), 1);
    let status = device.json("/v2/state/status").await;
    assert_eq!(status["containers"].as_array().unwrap().len(), 1);
}
