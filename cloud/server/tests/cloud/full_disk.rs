//! A full disk under SQLite, from the perspective of clients.

use data::testing::SmallDisk;
use reqwest::{Method, StatusCode};
use serde_json::json;

use crate::harness::Cloud;
use crate::shop::Shop;

#[tokio::test]
async fn chaos_writers_get_an_error_for_a_full_disk_and_readers_continue() {
    let Some(disk) = SmallDisk::new(12) else {
        return;
    };
    let database = format!("sqlite:{}", disk.path().join("cloud.sqlite").display());
    let many = "[quotas]\ntags = 100000\ntag_bytes = 1000000000";
    let cloud = Cloud::start_with(&database, many).await;
    let shop = Shop::open(&cloud).await;
    let device = shop.device(1).await;
    let filler = disk.path().join("filler");
    std::fs::write(&filler, vec![0; 2 << 20]).expect("room for the filler");
    let tag = |number: usize| json!({ "device": device.id, "tag_key": format!("t{number}"), "value": "x".repeat(9_900) });
    let mut written = 0;
    let (status, answer) = loop {
        let (status, answer) = shop
            .ann
            .send(Method::POST, "/v7/device_tag", tag(written))
            .await;
        if status != StatusCode::CREATED {
            break (status, answer);
        }
        written += 1;
        assert!(written < 3000, "it is never full");
    };
    assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE, "{answer}");
    assert!(
        answer.to_string().contains("disk of the database is full"),
        "{answer}"
    );
    // A device's report gets the same answer; readers continue, and so do polling devices.
    let report = json!({ &device.uuid: { "status": "x".repeat(40) } });
    let (status, answer) = device
        .signed
        .send(Method::PATCH, "/device/v3/state", report.clone())
        .await;
    if status != StatusCode::OK {
        assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE, "{answer}");
        assert!(
            answer.to_string().contains("disk of the database is full"),
            "{answer}"
        );
    }
    let tags = shop.ann.rows("/v7/device_tag?$select=id").await;
    assert_eq!(
        tags.len(),
        written,
        "what was acknowledged is there, and no more"
    );
    assert_eq!(device.poll(None).await.status(), StatusCode::OK);
    // The cloud is not restarted.
    std::fs::remove_file(&filler).expect("the filler");
    let (status, answer) = shop
        .ann
        .send(Method::POST, "/v7/device_tag", tag(written))
        .await;
    assert_eq!(status, StatusCode::CREATED, "{answer}");
    let (status, answer) = device
        .signed
        .send(Method::PATCH, "/device/v3/state", report)
        .await;
    assert_eq!(status, StatusCode::OK, "{answer}");
    cloud.end().await;
}
