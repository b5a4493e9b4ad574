//! The state of a device, with live updates.

use http::StatusCode;
use serde_json::json;

use super::page;
use crate::dashboard::{ann, with_browser};
use crate::shop::Shop;

#[tokio::test]
async fn a_device_is_shown_as_it_is_while_it_reports() {
    with_browser(async |cloud, chromium| {
        let shop = Shop::open(&cloud).await;
        let device = shop.device(7).await;
        let ann = ann(chromium, &cloud).await;
        ann.press("shop").await;
        ann.see("1 device").await;
        let name = shop.fields(&device, "device_name").await["device_name"].clone();
        let name = name.as_str().expect("a name");
        ann.press(name).await;
        ann.at(&page(&device)).await;
        let main = ann.within("Services").within("main");
        main.see("Not created yet").await;
        let mut report = json!({
            "status": "Downloading", "memory_usage": 400, "memory_total": 1000, "cpu_temp": 51,
            "os_version": "Platform OS 2.88.4", "supervisor_version": "16.0.0",
            "ip_address": "192.0.2.7 192.0.2.8",
            "apps": { &shop.uuid: { "release_uuid": "", "releases": { &shop.release.commit: { "services": {
                "main": {
                    "image": shop.release.locations[0], "status": "Downloading", "download_progress": 42,
                },
            }}}}},
        });
        assert_eq!(device.report(report.clone()).await, StatusCode::OK);
        main.see("Downloading").await;
        main.see("42 %").await;
        ann.see("400 of 1000 MB").await;
        ann.see("51 °C").await;
        ann.see("192.0.2.8").await;
        ann.see("Platform OS 2.88.4").await;
        ann.looks_well("device").await;

        let app = &mut report["apps"][&shop.uuid];
        app["release_uuid"] = json!(shop.release.commit);
        app["releases"][&shop.release.commit]["services"]["main"] =
            json!({ "image": shop.release.locations[0], "status": "Running" });
        assert_eq!(device.report(report).await, StatusCode::OK);
        main.see("Running").await;
        main.not_see("%").await;
        // It moves to the next release.
        let next = shop.release("shop-two", json!({ "services": {} })).await;
        ann.see("Target release shop-tw (from its fleet)").await;
        assert_ne!(next.id, shop.release.id);
        ann.leave().await;
    })
    .await;
}

#[tokio::test]
async fn plugin_fields_are_shown_live_and_as_text() {
    with_browser(async |cloud, chromium| {
        let shop = Shop::open(&cloud).await;
        let device = shop.device(7).await;
        let ann = ann(chromium, &cloud).await;
        ann.open(&page(&device)).await;
        ann.see("Services").await;
        ann.not_see("Reported by plugins").await;
        let report = async |fields: serde_json::Value| {
            let report = json!({ "plugin_fields": fields });
            assert_eq!(device.report(report).await, StatusCode::OK);
        };
        let hostile = "<img src=x onerror=alert(1)><script>alert(2)</script>";
        report(json!({ "tank-gauge": {
            "level": { "value": 63.5, "unit": "%" }, "armed": { "value": true }, "door": { "value": hostile },
        } }))
        .await;
        ann.see("Reported by plugins").await;
        let fields = ann.within("Reported by plugins");
        fields.see("63.5 %").await;
        fields.see("Yes").await;
        fields.see("tank-gauge").await;
        fields.see("<img src=x onerror=alert(1)>").await;
        assert_eq!(
            ann.script("document.querySelectorAll('main img').length")
                .await,
            0
        );
        ann.looks_well("device-plugin-fields").await;
        report(json!({ "tank-gauge": { "level": { "value": 64, "unit": "%" } } })).await;
        fields.see("64 %").await;
        fields.not_see("Yes").await;
        report(json!({})).await;
        ann.not_see("Reported by plugins").await;
        ann.leave().await;
    })
    .await;
}

#[tokio::test]
async fn a_page_that_is_open_while_the_cloud_restarts_goes_on() {
    with_browser(async |cloud, chromium| {
        let shop = Shop::open(&cloud).await;
        let device = shop.device(7).await;
        let uuid = device.uuid.clone();
        let token = device.signed.token.clone();
        let ann = ann(chromium, &cloud).await;
        ann.open(&page(&device)).await;
        ann.see("Memory Unknown").await;
        drop(shop);
        let cloud = cloud.restart().await;
        let report = json!({ &uuid: { "memory_usage": 12, "memory_total": 34 } });
        let (status, why) = cloud
            .by(token)
            .send(reqwest::Method::PATCH, "/device/v3/state", report)
            .await;
        assert_eq!(status, StatusCode::OK, "{why}");
        ann.see("12 of 34 MB").await;
        ann.not_see("The connection was lost").await;
        ann.leave().await;
    })
    .await;
}

#[tokio::test]
async fn names_that_are_hostile_stay_names() {
    with_browser(async |cloud, chromium| {
        let shop = Shop::open(&cloud).await;
        let device = shop.device(7).await;
        let hostile = "<img src=x onerror=alert(1)>\"'><script>alert(2)</script>";
        let (status, why) = shop
            .ann
            .send(
                reqwest::Method::PATCH,
                &format!("/v7/device({})", device.id),
                json!({ "device_name": hostile, "note": hostile }),
            )
            .await;
        assert_eq!(status, StatusCode::OK, "{why}");
        let tag = json!({ "device": device.id, "tag_key": "<b>key</b>", "value": hostile });
        shop.ann.create("device_tag", tag).await;
        let variable = json!({ "device": device.id, "name": "HOSTILE", "value": hostile });
        shop.ann
            .create("device_environment_variable", variable)
            .await;
        let ann = ann(chromium, &cloud).await;
        for path in ["", "/variables", "/settings"] {
            ann.open(&format!("{}{path}", page(&device))).await;
            ann.see("<img src=x onerror=alert(1)>").await;
            // And as it arrives in a live update.
            let name = json!({ "device_name": format!("{hostile}{}", path.len()) });
            let row = format!("/v7/device({})", device.id);
            shop.ann.send(reqwest::Method::PATCH, &row, name).await;
            ann.see(&format!("</script>{}", path.len())).await;
            assert_eq!(
                ann.script("document.querySelectorAll('main img').length")
                    .await,
                0
            );
            ann.on_phone().await;
            ann.fits_a_phone().await;
            ann.on_desk().await;
        }
        ann.open(&format!("/dashboard/fleets/{}", shop.fleet)).await;
        ann.see("<img src=x onerror=alert(1)>").await;
        ann.leave().await;
    })
    .await;
}
