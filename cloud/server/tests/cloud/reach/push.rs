//! Changes of a device's target state, or of its variables, are pushed to it.

use axum::Router;
use axum::routing::post;
use data::testing::on_fresh;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::{silent, until, until_connected};
use crate::fake_device::{KnownDevice, connect, known};
use crate::harness::{ApiCaller, Cloud, PATIENCE, on_both};

/// Creates a supervisor that passes on each `POST /v1/update`, with its body and address.
pub(crate) fn update_listener() -> (Router, mpsc::UnboundedReceiver<(String, Value)>) {
    let (sender, receiver) = mpsc::unbounded_channel();
    let handler = async move |uri: http::Uri, axum::Json(body): axum::Json<Value>| {
        let _ = sender.send((uri.to_string(), body));
        StatusCode::NO_CONTENT
    };
    (Router::new().route("/v1/update", post(handler)), receiver)
}

async fn connected(
    cloud: &Cloud,
    ann: &ApiCaller<'_>,
    fleet: i64,
) -> (KnownDevice, mpsc::UnboundedReceiver<(String, Value)>) {
    let device = known(cloud, ann, fleet).await;
    let receiver = online(cloud, ann, &device).await;
    (device, receiver)
}

async fn online(
    cloud: &Cloud,
    ann: &ApiCaller<'_>,
    device: &KnownDevice,
) -> mpsc::UnboundedReceiver<(String, Value)> {
    let (router, mut receiver) = update_listener();
    connect(cloud, device, router).await;
    until_connected(ann, device.id, true).await;
    // The first notification: there is something to run, which changed while it was offline.
    next(&mut receiver).await;
    receiver
}

pub(crate) async fn next(
    receiver: &mut mpsc::UnboundedReceiver<(String, Value)>,
) -> (String, Value) {
    let received = tokio::time::timeout(PATIENCE, receiver.recv()).await;
    received.expect("a push in time").expect("a push")
}

pub(crate) async fn variable(ann: &ApiCaller<'_>, of: &str, id: i64, name: &str) {
    let resource = format!("{of}_environment_variable");
    ann.create(&resource, json!({ of: id, "name": name, "value": "1" }))
        .await;
}

#[tokio::test]
async fn the_cloud_notifies_only_the_devices_that_a_change_affects() {
    on_both(async |cloud| {
        let ann = cloud.sign_in().await;
        let fleet = ann.fleet("pump", "raspberrypi4-64").await;
        let elsewhere = ann.fleet("fans", "raspberrypi4-64").await;
        let one = known(&cloud, &ann, fleet).await;
        let other = known(&cloud, &ann, fleet).await;
        let stranger = known(&cloud, &ann, elsewhere).await;
        // After the notification of this device, no notifications remain for devices that were created before it.
        // Otherwise, devices that connect in the meantime would get those, and one for their return.
        let _last = connected(&cloud, &ann, elsewhere).await;
        let mut one_hears = online(&cloud, &ann, &one).await;
        let mut other_hears = online(&cloud, &ann, &other).await;
        let mut stranger_hears = online(&cloud, &ann, &stranger).await;

        variable(&ann, "device", one.id, "A").await;
        let (address, body) = next(&mut one_hears).await;
        assert!(
            address.ends_with("/v1/update?apikey=secret+of+the+supervisor"),
            "{address}"
        );
        assert_eq!(body, json!({}));

        variable(&ann, "application", fleet, "B").await;
        next(&mut one_hears).await;
        next(&mut other_hears).await;

        let name = json!({ "device_name": "calm-river" });
        let path = format!("/v7/device({})", one.id);
        let (status, _) = ann.send(Method::PATCH, &path, name).await;
        assert_eq!(status, StatusCode::OK);
        next(&mut one_hears).await;

        // Unwanted notifications would have arrived before this one.
        let note = json!({ "note": "on the roof" });
        let (status, _) = ann.send(Method::PATCH, &path, note).await;
        assert_eq!(status, StatusCode::OK);
        variable(&ann, "application", elsewhere, "C").await;
        next(&mut stranger_hears).await;
        for hears in [&mut one_hears, &mut other_hears, &mut stranger_hears] {
            assert!(hears.try_recv().is_err(), "told of nothing");
        }
    })
    .await;
}

#[tokio::test]
async fn the_cloud_notifies_a_device_when_it_reconnects() {
    on_both(async |cloud| {
        let ann = cloud.sign_in().await;
        let fleet = ann.fleet("pump", "raspberrypi4-64").await;
        let device = known(&cloud, &ann, fleet).await;
        let (_, mut other_hears) = connected(&cloud, &ann, fleet).await;
        variable(&ann, "application", fleet, "A").await;
        next(&mut other_hears).await;
        let (router, mut hears) = update_listener();
        connect(&cloud, &device, router).await;
        next(&mut hears).await;
    })
    .await;
}

/// Makes a device poll, and waits until that is written.
async fn polled(cloud: &Cloud, ann: &ApiCaller<'_>, device: &KnownDevice) {
    let path = format!("/device/v3/{}/state", device.uuid);
    let (status, _) = cloud.by(device.key.clone()).get(&path).await;
    assert_eq!(status, StatusCode::OK);
    let path = format!("/v7/device({})?$select=api_heartbeat_state", device.id);
    until("the poll is written", async || {
        let rows = ann.rows(&path).await;
        (rows[0]["api_heartbeat_state"] == "online").then_some(())
    })
    .await;
}

#[tokio::test]
async fn the_cloud_notifies_a_connecting_device_only_if_its_target_is_outdated() {
    on_both(async |cloud| {
        let ann = cloud.sign_in().await;
        let fleet = ann.fleet("pump", "raspberrypi4-64").await;
        let device = known(&cloud, &ann, fleet).await;
        polled(&cloud, &ann, &device).await;
        let (router, mut hears) = update_listener();
        connect(&cloud, &device, router).await;
        until_connected(&ann, device.id, true).await;
        // What this device has is unknown.
        connected(&cloud, &ann, fleet).await;
        assert!(hears.try_recv().is_err(), "it has everything");
        variable(&ann, "application", fleet, "A").await;
        next(&mut hears).await;
    })
    .await;
}

#[tokio::test]
async fn a_restarted_cloud_sends_the_notification_that_a_kill_prevented_when_the_device_reconnects()
{
    on_fresh(async |url| {
        let cloud = Cloud::start(&url).await;
        let ann = cloud.sign_in().await;
        let fleet = ann.fleet("pump", "raspberrypi4-64").await;
        let device = known(&cloud, &ann, fleet).await;
        polled(&cloud, &ann, &device).await;
        variable(&ann, "application", fleet, "A").await;
        drop(cloud);
        let cloud = Cloud::start(&url).await;
        let (router, mut hears) = update_listener();
        connect(&cloud, &device, router).await;
        next(&mut hears).await;
    })
    .await;
}

#[tokio::test]
async fn a_device_that_does_not_answer_holds_nobody_up() {
    on_both(async |cloud| {
        let ann = cloud.sign_in().await;
        let fleet = ann.fleet("pump", "raspberrypi4-64").await;
        let deaf = known(&cloud, &ann, fleet).await;
        let never = Router::new().route(
            "/v1/update",
            post(async || std::future::pending::<()>().await),
        );
        connect(&cloud, &deaf, never).await;
        until_connected(&ann, deaf.id, true).await;
        let refusing = known(&cloud, &ann, fleet).await;
        connect(&cloud, &refusing, silent()).await;
        let (_, mut hears) = connected(&cloud, &ann, fleet).await;
        for name in ["A", "B", "C"] {
            variable(&ann, "application", fleet, name).await;
            next(&mut hears).await;
        }
    })
    .await;
}
