//! Boards without a battery start with a wrong year, until they receive the time from the network.

use std::fs;
use std::path::{Path, PathBuf};

use reqwest::Method;
use serde_json::{Value, json};
use tests::{FleetCloud, Supervisor, until};

use crate::with_its_cloud::{BOARD, deploy, known, until_runs};

/// Finds the library that changes a program's time, from Debian's package `faketime`.
fn library() -> Option<PathBuf> {
    let folders = fs::read_dir("/usr/lib").ok()?.flatten();
    let found = folders
        .map(|folder| folder.path().join("faketime/libfaketimeMT.so.1"))
        .find(|file| file.is_file());
    if found.is_none() {
        println!("SKIPPED: libfaketime is not installed");
    }
    found
}

fn set(clock: &Path, time: &str) {
    fs::write(clock, format!("{time}\n")).unwrap();
}

/// Returns the lines of the device's service that the cloud has.
async fn printed(cloud: &FleetCloud, device: &Value) -> usize {
    let path = format!("/device/v2/{}/logs", device["uuid"].as_str().unwrap());
    let lines = cloud.answer(cloud.request(Method::GET, &path)).await;
    let lines = lines.as_array().unwrap().iter();
    lines
        .filter(|line| line["message"].as_str().unwrap().starts_with("tick"))
        .count()
}

async fn until_printed_more(cloud: &FleetCloud, device: &Supervisor, row: &Value) {
    let before = printed(cloud, row).await;
    until("lines to come", || async {
        if printed(cloud, row).await > before {
            Ok(())
        } else {
            Err(device.log())
        }
    })
    .await;
}

async fn is_well(cloud: &FleetCloud, device: &Supervisor) {
    let row = known(cloud).await;
    let ping = json!({ "uuid": row["uuid"], "method": "GET" });
    let ping = cloud.request(Method::POST, "/supervisor/ping").json(&ping);
    assert_eq!(cloud.answer(ping).await, json!("OK"));
    assert_eq!(device.get("/v1/healthy").await.status, 200);
    until_printed_more(cloud, device, &row).await;
}

async fn a_device_at(wrong: &str, library: &Path, registry: &str) {
    let clocks = tempfile::tempdir().unwrap();
    let clock = clocks.path().join("clock");
    set(&clock, wrong);
    let cloud = FleetCloud::start(registry).await;
    let fleet = cloud.fleet("pump", BOARD).await;
    let first = deploy(&cloud, "1.0.0", &["tick"]);
    let device = Supervisor::on_wasm()
        .config_json(cloud.config_json(fleet, BOARD).await)
        .environment("LD_PRELOAD", library.to_str().unwrap())
        .environment("FAKETIME_TIMESTAMP_FILE", clock.to_str().unwrap())
        .environment("FAKETIME_NO_CACHE", "1")
        .environment("FAKETIME_DONT_FAKE_MONOTONIC", "1")
        .start()
        .await;
    until_runs(&cloud, &device, first).await;
    is_well(&cloud, &device).await;

    set(&clock, "+0");
    is_well(&cloud, &device).await;
    let second = deploy(&cloud, "2.0.0", &["tick"]);
    until_runs(&cloud, &device, second).await;
    is_well(&cloud, &device).await;
}

#[tokio::test]
async fn a_device_whose_clock_is_wrong_follows_its_cloud_and_goes_on_when_it_is_set() {
    let Ok(registry) = std::env::var("SUPERVISOR_TEST_REGISTRY") else {
        println!("SKIPPED: SUPERVISOR_TEST_REGISTRY is not set");
        return;
    };
    let Some(library) = library() else {
        return;
    };
    for wrong in ["@1970-01-02 00:00:00", "@2065-01-01 00:00:00"] {
        a_device_at(wrong, &library, &registry).await;
    }
}
