//! The plugins of a device and of a fleet, as reported by the devices.

use axum::Json;
use axum::Router;
use axum::routing::get;
use serde_json::{Value, json};

use super::page;
use crate::dashboard::{ann, with_browser};
use crate::fake_device::{KnownDevice, connect};
use crate::harness::Cloud;
use crate::shop::{Device, Shop, until};

/// Creates a supervisor with two plugins, one of which was refused. Its answers are hostile.
fn supervisor() -> Router {
    let plugins = json!({ "status": "success", "version": "0.1.0", "plugins": [
        {
            "name": "acme-rails", "file": "/x/acme_rails.wasm", "version": "1.2.0", "state": "running",
            "description": "Switches <b>rails</b>", "vendor": "Acme", "licence": "Apache-2.0",
            "homepage": "https://acme.example/rails", "interface": "1.4.0", "digest": "ab12",
            "signedBy": "acme", "routes": [{ "method": "GET", "path": "/v3/rails" }], "provides": [],
            "events": ["update-gate"], "actions": ["set"], "grants": ["store"], "calls": 7, "failures": 2,
            "lastError": "the board has no such rail",
        },
        {
            "name": "rival", "file": "/x/rival.wasm", "state": "refused", "digest": "cd34", "routes": [],
            "provides": [], "events": [], "actions": [], "grants": [], "calls": 0, "failures": 0,
            "refused": "the policy pins no file of a plugin `rival`",
        },
    ] });
    let log = json!({ "status": "success", "newest": 1, "lines": [
        { "number": 1, "time": "2026-11-26T03:04:05.678Z", "level": "warn", "message": "rail <i>5v</i> is low" },
    ] });
    let answer = |value: Value| get(|| async move { Json(value) });
    Router::new()
        .route("/v3/plugins", answer(plugins))
        .route("/v3/plugins/acme-rails/log", answer(log))
}

async fn connected(cloud: &Cloud, device: &Device<'_>) {
    let known = KnownDevice {
        id: device.id,
        actor: 0,
        uuid: device.uuid.clone(),
        key: device.signed.token.clone(),
    };
    connect(cloud, &known, supervisor()).await;
    let ann = cloud.sign_in().await;
    until("the tunnel is known", || async {
        let path = format!("/v7/device({})?$select=is_online", device.id);
        ann.rows(&path).await[0]["is_online"] == true
    })
    .await;
}

#[tokio::test]
async fn the_plugins_of_a_device_are_shown_with_who_vouches_for_them_and_what_they_say() {
    with_browser(async |cloud, chromium| {
        let shop = Shop::open(&cloud).await;
        let device = shop.device(7).await;
        let ann = ann(chromium, &cloud).await;
        ann.open(&page(&device)).await;
        ann.press("Plugins").await;
        ann.see("The device is not connected.").await;

        connected(&cloud, &device).await;
        ann.reload().await;
        ann.see("Running").await;
        ann.see("Key acme").await;
        ann.see("Refused").await;
        ann.looks_well("plugins").await;
        ann.press("acme-rails").await;
        ann.see("Switches <b>rails</b>").await;
        ann.see("Apache-2.0").await;
        ann.can_press("https://acme.example/rails").await;
        ann.see("7, of which 2 failed").await;
        ann.see("the board has no such rail").await;
        ann.see("rail <i>5v</i> is low").await;
        ann.see("/v3/rails").await;
        ann.open(&format!("{}/plugin/rival", page(&device))).await;
        ann.see("the policy pins no file of a plugin `rival`").await;
        ann.open(&format!("{}/plugin/gone", page(&device))).await;
        ann.see("The device has no plugin of this name any more.")
            .await;
        ann.leave().await;
    })
    .await;
}

#[tokio::test]
async fn the_plugins_of_a_fleet_are_counted_over_its_devices() {
    with_browser(async |cloud, chromium| {
        let shop = Shop::open(&cloud).await;
        let ann = ann(chromium, &cloud).await;
        let fleet = format!("/dashboard/fleets/{}", shop.fleet);
        ann.open(&fleet).await;
        ann.press("Plugins").await;
        ann.see("No device of this fleet is connected.").await;
        for number in [7, 8] {
            let device = shop.device(number).await;
            connected(&cloud, &device).await;
        }
        ann.reload().await;
        ann.see("2 of 2 connected devices answered.").await;
        ann.see("1.2.0 on 2").await;
        ann.looks_well("fleet-plugins").await;
        ann.press("acme-rails").await;
        ann.see("Apache-2.0").await;
        ann.see("Key acme").await;
        ann.see("2 of 7 calls").await;
        ann.looks_well("fleet-plugin").await;
        ann.leave().await;
    })
    .await;
}
