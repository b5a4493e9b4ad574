//! The most common path through the dashboard, with each database.

use data::testing::on_fresh;
use http::StatusCode;
use serde_json::json;

use super::ann;
use super::browser::Chromium;
use super::device::{Supervisor, page};
use crate::harness::Cloud;
use crate::shop::Shop;

#[tokio::test]
async fn a_user_finds_watches_and_pins_a_device_with_either_database() {
    let Some(chromium) = Chromium::start().await else {
        return;
    };
    on_fresh(async |url| {
        let cloud = Cloud::start(&url).await;
        let shop = Shop::open(&cloud).await;
        let device = shop.device(7).await;
        let supervisor = Supervisor::connect(&cloud, &device).await;
        let ann = ann(&chromium, &cloud).await;
        ann.press("shop").await;
        let name = shop.fields(&device, "device_name").await["device_name"].clone();
        ann.press(name.as_str().expect("a name")).await;
        ann.at(&page(&device)).await;
        ann.see("Connected").await;
        let report = json!({ "memory_usage": 3, "memory_total": 7, "os_version": "Platform OS 2.88.4" });
        assert_eq!(device.report(report).await, StatusCode::OK);
        ann.see("3 of 7 MB").await;
        ann.press("Blink").await;
        ann.see("The device is blinking.").await;
        assert_eq!(supervisor.take_requests().len(), 1);
        ann.press("Rename …").await;
        ann.fill("Name", "north").await;
        ann.press("Rename").await;
        ann.heading("north").await;

        ann.press("Variables").await;
        ann.within("Variables").fill("Name of the new variable", "A").await;
        ann.within("Variables").fill("Value", "it's 100 %").await;
        ann.press("Add variable").await;
        ann.within("Variables").within("A").see("it's 100 %").await;

        ann.press("Settings and tags").await;
        ann.press("Override update locks").await;
        ann.see("Override update locks: on").await;
        let choice = format!(
            "[...document.querySelectorAll('option')].map(it => it.label.trim()).find(it => it.startsWith('{}'))",
            &shop.release.commit[..7]
        );
        let choice = ann.script(&choice).await;
        ann.choose("Runs", choice.as_str().expect("a release")).await;
        ann.press("Set the release").await;
        ann.see("The device is pinned to this release.").await;
        let (state, _) = device.state().await;
        let inside = &state["apps"][&shop.uuid]["releases"][&shop.release.commit];
        assert_eq!(inside["services"]["main"]["environment"]["A"], "it's 100 %");
        assert_eq!(state["config"]["PLATFORM_SUPERVISOR_OVERRIDE_LOCK"], "true");
        ann.press("Overview").await;
        ann.see("(pinned)").await;
        ann.leave().await;
    })
    .await;
}
