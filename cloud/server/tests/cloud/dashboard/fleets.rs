//! Fleets and their devices.

use reqwest::{Method, StatusCode};
use serde_json::json;

use super::{ann, with_browser};
use crate::shop::{Shop, until};

#[tokio::test]
async fn a_fleet_is_made_renamed_and_deleted() {
    with_browser(async |cloud, chromium| {
        let ann = ann(chromium, &cloud).await;
        ann.see("No fleets yet").await;
        ann.looks_well("no-fleets").await;
        ann.press("New fleet").await;
        ann.fill("Name", "pu?").await;
        ann.choose("Device type", "Raspberry Pi 4 (64-bit)").await;
        ann.looks_well("new-fleet").await;
        ann.fill("Name", "pu?mps").await;
        ann.press("Create fleet").await;
        ann.see("app_name").await;
        assert_eq!(
            ann.value("Name").await,
            "pu?mps",
            "what was typed is still there"
        );
        ann.fill("Name", "pumps").await;
        ann.press("Create fleet").await;
        ann.see("No devices yet").await;
        ann.looks_well("no-devices").await;

        ann.press("Settings").await;
        ann.fill("Name of the fleet", "valves").await;
        ann.press("Save").await;
        ann.see("admin/valves").await;
        ann.looks_well("fleet-settings").await;

        ann.press("Delete this fleet").await;
        ann.fill("Type its name, valves, to confirm", "pumps").await;
        ann.press("Delete the fleet").await;
        ann.see("Nothing was deleted").await;
        ann.fill("Type its name, valves, to confirm", "valves")
            .await;
        ann.press("Delete the fleet").await;
        ann.at("/dashboard").await;
        ann.see("No fleets yet").await;
        ann.leave().await;
    })
    .await;
}

#[tokio::test]
async fn the_list_of_fleets_follows_what_happens() {
    with_browser(async |cloud, chromium| {
        let shop = Shop::open(&cloud).await;
        let somebody = ann(chromium, &cloud).await;
        somebody.within("shop").see("0 of 0").await;
        let device = shop.device(7).await;
        somebody.within("shop").see("0 of 1").await;
        device.state().await;
        somebody.within("shop").see("1 of 1").await;
        shop.ann.fleet("other", "raspberrypi4-64").await;
        somebody.see("admin/other").await;
        somebody.looks_well("fleets").await;
        somebody.leave().await;
    })
    .await;
}

#[tokio::test]
async fn devices_are_shown_as_they_are_while_they_report() {
    with_browser(async |cloud, chromium| {
        let shop = Shop::open(&cloud).await;
        let (one, two) = (shop.device(1).await, shop.device(2).await);
        for (device, name) in [(&one, "calm-river"), (&two, "lone-hill")] {
            let path = format!("/v7/device({})", device.id);
            let named = json!({ "device_name": name });
            let (status, _) = shop.ann.send(Method::PATCH, &path, named).await;
            assert_eq!(status, StatusCode::OK);
        }
        let tag = json!({ "device": two.id, "tag_key": "place", "value": "north" });
        shop.ann.create("device_tag", tag).await;
        let ann = ann(chromium, &cloud).await;
        ann.press("shop").await;
        ann.see("2 devices").await;
        let row = ann.within("calm-river");
        row.see("Configuring").await;
        one.state().await;
        row.see("Polls").await;
        let downloading = json!({
            "status": "Downloading",
            "apps": { &shop.uuid: { "release_uuid": "", "releases": { &shop.release.commit: { "services": {
                "main": { "image": shop.release.locations[0], "status": "Downloading", "download_progress": 40 },
                "side": { "image": shop.release.locations[1], "status": "Downloading", "download_progress": 60 },
            }}}}},
        });
        assert_eq!(one.report(downloading).await, StatusCode::OK);
        row.see("Updating").await;
        row.see("50 %").await;
        ann.looks_well("devices").await;
        let running = json!({
            "status": "Idle",
            "apps": { &shop.uuid: { "release_uuid": &shop.release.commit, "releases": { &shop.release.commit: { "services": {
                "main": { "image": shop.release.locations[0], "status": "Running" },
                "side": { "image": shop.release.locations[1], "status": "Running" },
            }}}}},
        });
        assert_eq!(one.report(running).await, StatusCode::OK);
        row.see("shop-on").await;

        // Found by what people know about them, and by keyboard.
        ann.key("/").await;
        ann.write("NORTH").await;
        ann.key("Enter").await;
        ann.see("1 device found").await;
        ann.see("lone-hill").await;
        ann.not_see("calm-river").await;
        ann.press("Show all").await;
        ann.see("2 devices").await;
        ann.fill("Tag, or tag=value", "place=south").await;
        ann.press("Show").await;
        ann.see("No devices match these filters.").await;
        ann.back().await;
        ann.see("2 devices").await;
        ann.leave().await;
    })
    .await;
}

#[tokio::test]
async fn selections_and_input_stay_while_the_page_is_updated() {
    with_browser(async |cloud, chromium| {
        let shop = Shop::open(&cloud).await;
        let ann = ann(chromium, &cloud).await;
        ann.press("shop").await;
        ann.see("No devices yet").await;
        ann.fill("Tag, or tag=value", "half a wo").await;
        shop.device(1).await;
        ann.see("1 device").await;
        assert_eq!(ann.value("Tag, or tag=value").await, "half a wo");
        ann.leave().await;
    })
    .await;
}

#[tokio::test]
async fn a_device_is_added_by_a_key_that_is_shown_once() {
    with_browser(async |cloud, chromium| {
        let shop = Shop::open(&cloud).await;
        let ann = ann(chromium, &cloud).await;
        ann.press("shop").await;
        ann.press("Add a device").await;
        ann.fill("What it is for", "the factory").await;
        ann.press("Create key").await;
        ann.see("shown this once").await;
        ann.looks_well("add-device").await;
        let key = ann
            .script("document.querySelector('.once code').innerText")
            .await;
        let key = key.as_str().expect("a key").to_owned();
        let body = json!({
            "application": shop.fleet, "device_type": "raspberrypi4-64", "uuid": "ab".repeat(16),
        });
        let made = cloud
            .by(key)
            .send(Method::POST, "/device/register", body)
            .await;
        assert_eq!(made.0, StatusCode::CREATED, "{}", made.1);
        ann.reload().await;
        ann.not_see("shown this once").await;
        ann.press("Devices").await;
        ann.see("1 device").await;
        ann.leave().await;
    })
    .await;
}

#[tokio::test]
async fn a_page_that_is_left_open_leaves_with_the_session() {
    with_browser(async |cloud, chromium| {
        let shop = Shop::open(&cloud).await;
        let somebody = ann(chromium, &cloud).await;
        somebody.press("shop").await;
        somebody.see("No devices yet").await;
        let new =
            json!({ "currentPassword": crate::harness::PASSWORD, "newPassword": "another horse" });
        let (status, _) = shop
            .ann
            .send(Method::POST, "/user/v1/change-password", new)
            .await;
        assert_eq!(status, StatusCode::OK);
        until("the page leaves", || async {
            somebody
                .path()
                .await
                .starts_with("/dashboard/sign-in?next=")
        })
        .await;
        somebody.leave().await;
    })
    .await;
}
