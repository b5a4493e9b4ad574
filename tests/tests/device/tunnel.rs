//! The cloud sends requests to the device, through the connection that the device keeps.

use futures::StreamExt;
use http_body_util::BodyExt;
use serde_json::{Value, json};
use tests::{CloudBehaviour, RecordedCloud, Supervisor, guest, services_of, until};

const COMMIT: &str = "0c1d2e3f405162738495a6b7c8d9e0f1";

async fn with_tunnel() -> (RecordedCloud, Supervisor) {
    let cloud = RecordedCloud::start(&guest("guest")).await;
    let config = cloud.config_json();
    let device = Supervisor::on_wasm().config_json(config).start().await;
    until_runs(&device, COMMIT).await;
    cloud.until_tunnels(1).await;
    (cloud, device)
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

async fn get(cloud: &RecordedCloud, path: &str) -> (u16, String) {
    cloud.ask_for_text("GET", path, Value::Null).await.unwrap()
}

#[tokio::test]
async fn the_cloud_asks_the_devices_own_api_with_its_key() {
    let (cloud, device) = with_tunnel().await;
    let key = device.key();
    assert_eq!(get(&cloud, "/ping").await, (200, "OK".to_owned()));
    let (status, text) = get(&cloud, &format!("/v1/device?apikey={key}")).await;
    let state: Value = serde_json::from_str(&text).unwrap();
    assert_eq!((status, &state["commit"]), (200, &json!(COMMIT)));
    assert_eq!(get(&cloud, "/v1/device").await.0, 401);
    assert_eq!(get(&cloud, "/v1/device?apikey=wrong").await.0, 401);
    assert_eq!(
        get(&cloud, &format!("/v1/nothing?apikey={key}")).await.0,
        404
    );
    let (status, name) = get(&cloud, &format!("/v2/device/name?apikey={key}")).await;
    assert_eq!((status, name.contains("calm-river")), (200, true), "{name}");
    let restart = format!("/v2/applications/4/restart-service?apikey={key}");
    let answer = cloud.ask_for_text("POST", &restart, json!({ "serviceName": "main" }));
    assert_eq!(answer.await, Ok((200, "OK".to_owned())));
    // A longer head than the device accepts.
    let long = format!("/ping?{}", "x".repeat(60_000));
    let refused = cloud.ask_for_text("GET", &long, Value::Null).await;
    assert!(!matches!(refused, Ok((200, _))), "{refused:?}");
    assert_eq!(get(&cloud, "/ping").await.0, 200, "it goes on");
}

#[tokio::test]
async fn a_change_reaches_the_device_at_once_where_the_cloud_says_so() {
    let (cloud, device) = with_tunnel().await;
    cloud.release("c2", |service| service["environment"]["A"] = json!("2"));
    let update = format!("/v1/update?apikey={}", device.key());
    let answer = cloud.ask_for_text("POST", &update, json!({})).await;
    assert_eq!(answer, Ok((204, String::new())));
    until_runs(&device, "c2").await;
}

#[tokio::test]
async fn streams_pass_beside_other_requests_and_end_when_the_device_stops() {
    let (cloud, mut device) = with_tunnel().await;
    let events = format!("/v3/events?apikey={}", device.key());
    let events = cloud.ask("GET", &events, Value::Null).await.unwrap();
    assert_eq!(events.status(), 200);
    let mut events = events.into_body().into_data_stream();
    let restart = format!("/v2/applications/4/restart-service?apikey={}", device.key());
    let restarted = cloud.ask_for_text("POST", &restart, json!({ "serviceName": "main" }));
    assert_eq!(restarted.await.unwrap().0, 200);
    let piece = tokio::time::timeout(tests::DEADLINE, events.next()).await;
    assert!(!piece.unwrap().unwrap().unwrap().is_empty());
    let ended =
        tokio::spawn(
            async move { while events.next().await.is_some_and(|piece| piece.is_ok()) {} },
        );
    assert_eq!(device.terminate().await.code(), Some(0));
    tokio::time::timeout(tests::DEADLINE, ended)
        .await
        .unwrap()
        .unwrap();
}

#[tokio::test]
async fn the_tunnel_is_opened_again_by_a_device_whose_cloud_was_gone_or_did_not_want_it() {
    let (mut cloud, device) = with_tunnel().await;
    cloud.go();
    cloud.come_back().await;
    cloud.until_tunnels(2).await;
    until("the device to answer", || async {
        cloud.ask_for_text("GET", "/ping", Value::Null).await
    })
    .await;
    let before = cloud.requests().len();
    cloud.behave(CloudBehaviour::Sends(b"not a tunnel".to_vec()));
    cloud.go();
    cloud.come_back().await;
    until("the device to ask for a tunnel", || async {
        let requests = cloud.requests()[before..].to_vec();
        let mut requests = requests.iter();
        let found =
            requests.any(|request| request.path.ends_with("/tunnel") && request.status == 200);
        if found { Ok(()) } else { Err(device.log()) }
    })
    .await;
    assert_eq!(device.get("/ping").await.status, 200);
    cloud.behave(CloudBehaviour::Works);
    cloud.until_tunnels(3).await;
    assert_eq!(services_of(device.state_dir()).len(), 1);
}

#[tokio::test]
async fn a_device_whose_cloud_says_that_it_goes_away_logs_why_and_is_back() {
    let (cloud, device) = with_tunnel().await;
    for tunnels in 2..=3 {
        cloud.say_that_it_goes_away();
        cloud.until_tunnels(tunnels).await;
    }
    assert_eq!(get(&cloud, "/ping").await, (200, "OK".to_owned()));
    let why =
        "the cloud no longer reaches this device directly: this cloud is stopping or restarting";
    let log = device.log();
    assert_eq!(log.matches(why).count(), 2, "{log}");
}

#[tokio::test]
async fn a_variable_closes_the_tunnel_and_opens_it() {
    let (cloud, device) = with_tunnel().await;
    let vpn = |on: &str| json!({ "PLATFORM_SUPERVISOR_VPN_CONTROL": on });
    cloud.change(|device| device["config"] = vpn("false"));
    device.post("/v1/update", &json!({})).await;
    until("the tunnel to be closed", || async {
        match cloud.ask_for_text("GET", "/ping", Value::Null).await {
            Ok(answer) => Err(answer),
            Err(_) => Ok(()),
        }
    })
    .await;
    let before = cloud.tunnels();
    cloud.change(|device| device["config"] = vpn("true"));
    device.post("/v1/update", &json!({})).await;
    cloud.until_tunnels(before + 1).await;
}
