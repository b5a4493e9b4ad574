//! The database of a cloud is restored from a backup.

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::fake_device::{connect, known};
use crate::harness::Cloud;
use crate::reach::push::{next, update_listener};
use crate::reach::{until, until_connected};
use crate::shop::Shop;

#[tokio::test]
async fn devices_learn_soon_that_the_database_was_restored_from_a_backup() {
    let folder = tempfile::tempdir().expect("a folder");
    let [file, backup] = ["cloud.sqlite", "backup.sqlite"].map(|name| folder.path().join(name));
    let url = format!("sqlite:{}", file.display());
    let cloud = Cloud::start(&url).await;
    let (device, token, fleet) = {
        let shop = Shop::open(&cloud).await;
        let device = known(&cloud, &shop.ann, shop.fleet).await;
        (
            device,
            shop.ann.token.clone(),
            (shop.fleet, shop.uuid.clone(), shop.services),
        )
    };
    let state = format!("/device/v3/{}/state", device.uuid);
    let polled = async |cloud: &Cloud| {
        let by = cloud.by(device.key.clone());
        let (status, state) = by.get(&state).await;
        assert_eq!(status, StatusCode::OK);
        let path = format!("/v7/device({})?$select=api_heartbeat_state", device.id);
        until("the poll is written", async || {
            let rows = cloud.by(token.clone()).rows(&path).await;
            (rows[0]["api_heartbeat_state"] == "online").then_some(())
        })
        .await;
        state
    };
    let before = polled(&cloud).await;
    cloud.end().await;
    std::fs::copy(&file, &backup).expect("a backup");

    let cloud = Cloud::start(&url).await;
    let two = {
        let mut shop = Shop::named(&cloud, "elsewhere").await;
        (shop.fleet, shop.uuid, shop.services) = fleet.clone();
        shop.release("two", json!({ "services": { "main": { "image": "x" } } }))
            .await
    };
    assert_ne!(polled(&cloud).await, before);
    let image = format!("{}@sha256:{}", two.locations[0], "0".repeat(64));
    let runs = json!({ &device.uuid: { "apps": { &fleet.1: { "release_uuid": "two", "releases": { "two": {
        "update_status": "done", "services": { "main": { "image": image, "status": "Running" } },
    } } } } } });
    let report = async |cloud: &Cloud| {
        let by = cloud.by(device.key.clone());
        by.send(Method::PATCH, "/device/v3/state", runs.clone())
            .await
    };
    assert_eq!(report(&cloud).await.0, StatusCode::OK);
    cloud.end().await;
    for beside in ["cloud.sqlite-wal", "cloud.sqlite-shm"] {
        let _ = std::fs::remove_file(folder.path().join(beside));
    }
    std::fs::copy(&backup, &file).expect("the backup");

    // By its row, it has its state, but it is notified anyway when it reconnects.
    let cloud = Cloud::start(&url).await;
    let (router, mut hears) = update_listener();
    let tunnel = connect(&cloud, &device, router).await;
    next(&mut hears).await;
    let ann = cloud.by(token.clone());
    until_connected(&ann, device.id, true).await;
    assert_eq!(polled(&cloud).await, before);
    // Its report is refused without a message, as always; the log contains the reason, and the device is notified once
    // more.
    assert_eq!(
        report(&cloud).await,
        (StatusCode::UNAUTHORIZED, Value::Null)
    );
    next(&mut hears).await;
    until("the log says why", async || {
        cloud
            .log()
            .contains("names a release or an image")
            .then_some(())
    })
    .await;
    // Once a minute is enough, and once after a start.
    assert_eq!(report(&cloud).await.0, StatusCode::UNAUTHORIZED);
    tunnel.abort();
    let (router, mut hears_again) = update_listener();
    connect(&cloud, &device, router).await;
    until_connected(&ann, device.id, true).await;
    let path = format!("/v7/device({})", device.id);
    let (status, _) = ann.send(Method::PATCH, &path, json!({ "note": "x" })).await;
    assert_eq!(status, StatusCode::OK);
    assert!(hears_again.try_recv().is_err(), "it has everything");
}
