//! A fleet's releases.

use reqwest::{Method, StatusCode};
use serde_json::json;

use super::{ann, with_browser};
use crate::shop::Shop;

#[tokio::test]
async fn a_fleet_is_pinned_to_a_release_and_follows_the_latest_again() {
    with_browser(async |cloud, chromium| {
        let shop = Shop::open(&cloud).await;
        let composition =
            json!({ "services": { "main": { "image": "x" }, "side": { "image": "y" } } });
        let newer = shop.release("shop-two", composition).await;
        let track = json!({ "should_track_latest_release": true });
        let path = format!("/v7/application({})", shop.fleet);
        shop.ann.send(Method::PATCH, &path, track).await;
        let target = async || {
            let path =
                format!("{path}?$select=should_be_running__release,should_track_latest_release");
            let row = shop.ann.rows(&path).await.remove(0);
            (
                row["should_be_running__release"]["__id"].as_i64(),
                row["should_track_latest_release"].as_bool(),
            )
        };
        let ann = ann(chromium, &cloud).await;
        ann.press("shop").await;
        ann.press("Releases").await;
        ann.see("follows its latest release").await;
        ann.within("shop-tw").see("Target").await;
        ann.looks_well("releases").await;
        ann.within("shop-on")
            .press("Pin the fleet to shop-on")
            .await;
        ann.see("pinned to one release").await;
        ann.within("shop-on").see("Target").await;
        assert_eq!(target().await, (Some(shop.release.id), Some(false)));
        ann.press("Follow the latest release").await;
        ann.see("follows its latest release").await;
        assert_eq!(target().await, (Some(newer.id), Some(true)));
        ann.leave().await;
    })
    .await;
}

#[tokio::test]
async fn a_release_is_named_noted_invalidated_and_deleted() {
    with_browser(async |cloud, chromium| {
        let shop = Shop::open(&cloud).await;
        let device = shop.device(7).await;
        let running = json!({ "apps": { &shop.uuid: {
            "release_uuid": &shop.release.commit, "releases": { &shop.release.commit: { "services": {} } },
        }}});
        assert_eq!(device.report(running).await, StatusCode::OK);
        let composition = json!({ "services": { "main": { "image": "x" }, "side": { "image": "y" } } });
        let other = shop.release("shop-two", composition).await;
        let ann = ann(chromium, &cloud).await;
        ann.open(&format!("/dashboard/releases/{}", shop.release.id)).await;
        ann.within("Services").see("main").await;
        ann.within("Devices that run this release").see("Configuring").await;
        ann.looks_well("release").await;
        ann.fill("Version", "1.4.2").await;
        ann.fill("Note", "the one for the north").await;
        ann.press("Save").await;
        ann.see("Release 1.4.2").await;
        ann.fill("Version", "not a version").await;
        ann.press("Save").await;
        ann.see("semver").await;
        ann.reload().await;
        assert_eq!(ann.value("Note").await, "the one for the north");
        ann.fill("Why", "it leaks").await;
        ann.press("Invalidate").await;
        ann.see("It can no longer become a target. it leaks").await;
        ann.cannot_press("Pin the fleet to this release").await;
        ann.press("Mark as valid").await;
        ann.can_press("Pin the fleet to this release").await;

        // The target of a fleet cannot be deleted, and the form says so.
        ann.open(&format!("/dashboard/releases/{}", other.id)).await;
        ann.press("Delete this release").await;
        ann.fill("Type its commit, shop-two, to confirm", "shop-two").await;
        ann.press("Delete the release").await;
        ann.see("set another target for that fleet first").await;
        ann.leave().await;
    })
    .await;
}
