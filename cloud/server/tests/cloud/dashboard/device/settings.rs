//! Settings of a device that people make.

use http::StatusCode;
use reqwest::Method;
use serde_json::json;

use super::page;
use crate::dashboard::{ann, with_browser};
use crate::shop::Shop;

#[tokio::test]
async fn a_device_is_renamed_noted_tagged_and_pinned() {
    with_browser(async |cloud, chromium| {
        let shop = Shop::open(&cloud).await;
        let first = &shop.release;
        let device = shop.device(7).await;
        shop.release("shop-two", json!({ "services": {} })).await;
        let ann = ann(chromium, &cloud).await;
        ann.open(&page(&device)).await;
        ann.press("Settings and tags").await;
        ann.fill("Name", "north pump").await;
        ann.press("Rename").await;
        ann.see("Renamed to north pump.").await;
        ann.heading("north pump").await;
        ann.fill("Note", "behind the door\nof the shed").await;
        ann.press("Save the note").await;
        ann.see("Saved.").await;
        let fields = shop.fields(&device, "device_name,note").await;
        assert_eq!(fields["device_name"], "north pump");
        assert_eq!(fields["note"], "behind the door\nof the shed");

        let tags = ann.within("Tags");
        tags.fill("Name of the new tag", "site").await;
        tags.fill("Value", "north").await;
        tags.press("Add tag").await;
        tags.within("site").see("north").await;
        tags.within("site").press("Edit site").await;
        tags.within("site").fill("Value of site", "south").await;
        tags.within("site").press("Save site").await;
        tags.within("site").see("south").await;

        ann.choose("Runs", &option(&ann, &first.commit).await).await;
        ann.press("Set the release").await;
        ann.see("The device is pinned to this release.").await;
        let (state, _) = device.state().await;
        assert!(
            state["apps"][&shop.uuid]["releases"]
                .get(&first.commit)
                .is_some(),
            "{state}"
        );
        ann.looks_well("device-settings").await;
        ann.press("Overview").await;
        ann.see("site: south").await;
        ann.see("(pinned)").await;
        ann.press("Settings and tags").await;
        ann.choose("Runs", "What its fleet runs").await;
        ann.press("Set the release").await;
        ann.see("The device follows its fleet.").await;
        let (state, _) = device.state().await;
        assert!(
            state["apps"][&shop.uuid]["releases"]
                .get("shop-two")
                .is_some(),
            "{state}"
        );
        ann.leave().await;
    })
    .await;
}

#[tokio::test]
async fn a_device_is_deactivated_and_activated() {
    with_browser(async |cloud, chromium| {
        let shop = Shop::open(&cloud).await;
        let device = shop.device(7).await;
        let active = async || shop.fields(&device, "is_active,overall_status").await;
        assert_eq!(active().await["is_active"], true);
        let ann = ann(chromium, &cloud).await;
        ann.open(&page(&device)).await;
        ann.press("Settings and tags").await;
        ann.press("Deactivate the device").await;
        ann.see("The device is deactivated.").await;
        let fields = active().await;
        assert_eq!(fields["is_active"], false);
        assert_eq!(fields["overall_status"], "inactive");
        ann.reload().await;
        ann.looks_well("device-deactivated").await;
        ann.press("Activate the device").await;
        ann.see("The device is active.").await;
        assert_eq!(active().await["is_active"], true);
        ann.leave().await;
    })
    .await;
}

/// Returns the text of a release's option.
async fn option(ann: &crate::dashboard::browser::Visitor, commit: &str) -> String {
    let short: String = commit.chars().take(7).collect();
    let script = format!(
        "[...document.querySelectorAll('option')].map(it => it.label.trim()).find(it => it.startsWith('{short}'))"
    );
    ann.script(&script)
        .await
        .as_str()
        .expect("a release")
        .to_owned()
}

#[tokio::test]
async fn locks_are_overridden_by_a_switch_of_the_device_or_its_fleet() {
    with_browser(async |cloud, chromium| {
        let shop = Shop::open(&cloud).await;
        let device = shop.device(7).await;
        let name = "PLATFORM_SUPERVISOR_OVERRIDE_LOCK";
        let target = async || device.state().await.0["config"][name].clone();
        let ann = ann(chromium, &cloud).await;
        ann.open(&format!("{}/settings", page(&device))).await;
        ann.is_on("Override update locks", false).await;
        ann.see("Not set: the device's default applies.").await;
        ann.press("Override update locks").await;
        ann.see("Override update locks: on").await;
        ann.is_on("Override update locks", true).await;
        assert_eq!(target().await, "true");
        ann.press("Override update locks").await;
        ann.see("Override update locks: off").await;
        assert_eq!(target().await, "false");
        // The fleet's value applies if the device has none of its own.
        let own = format!(
            "/v7/device_config_variable(device={},name='{name}')",
            device.id
        );
        let (status, why) = shop.ann.send(Method::DELETE, &own, json!({})).await;
        assert_eq!(status, StatusCode::OK, "{why}");
        let fleet = json!({ "application": shop.fleet, "name": name, "value": "1" });
        shop.ann.create("application_config_variable", fleet).await;
        ann.see("Override update locks: on").await;
        ann.see("Set by its fleet.").await;
        assert_eq!(target().await, "1");
        ann.is_on("Remote access", true).await;
        ann.press("Remote access").await;
        ann.see("Remote access: off").await;
        let (state, _) = device.state().await;
        assert_eq!(state["config"]["PLATFORM_SUPERVISOR_VPN_CONTROL"], "false");
        ann.leave().await;
    })
    .await;
}

#[tokio::test]
async fn a_device_moves_to_another_fleet_and_is_deleted_by_its_name_alone() {
    with_browser(async |cloud, chromium| {
        let shop = Shop::open(&cloud).await;
        let device = shop.device(7).await;
        let other = shop.ann.fleet("valves", "raspberrypi4-64").await;
        let ann = ann(chromium, &cloud).await;
        ann.open(&format!("{}/settings", page(&device))).await;
        ann.choose("Belongs to", "valves (admin/valves)").await;
        ann.press("Move device").await;
        ann.within("Breadcrumbs").see("valves").await;
        let fields = shop.fields(&device, "belongs_to__application").await;
        assert_eq!(fields["belongs_to__application"]["__id"], other);
        ann.press("Delete this device …").await;
        ann.fill("Its name, to confirm", "another").await;
        ann.press("Delete the device").await;
        ann.see("That is not the device's name; nothing was deleted.")
            .await;
        let name = shop.fields(&device, "device_name").await["device_name"].clone();
        ann.fill("Its name, to confirm", name.as_str().expect("a name"))
            .await;
        ann.press("Delete the device").await;
        ann.at(&format!("/dashboard/fleets/{other}")).await;
        let found = shop.ann.rows(&format!("/v7/device({})", device.id)).await;
        assert!(found.is_empty(), "{found:?}");
        ann.open(&page(&device)).await;
        ann.see("This page does not exist").await;
        ann.leave().await;
    })
    .await;
}
