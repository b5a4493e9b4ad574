//! The picture of the dashboard in README.md. `UPDATE_DOCS=1` recreates it.

use std::path::Path;

use axum::Router;
use http::StatusCode;
use reqwest::Method;
use serde_json::json;

use super::{ann, with_browser};
use crate::fake_device::{connect, known};
use crate::shop::{Device, Shop};

const PICTURE: &str = "../../docs/pictures/dashboard.png";

#[tokio::test]
async fn the_readme_shows_a_fleet_as_the_dashboard_does() {
    with_browser(async |cloud, chromium| {
        let shop = Shop::named(&cloud, "displays").await;
        let path = format!("/v7/release({})", shop.release.id);
        let version = json!({ "semver": "1.4.0" });
        let (changed, _) = shop.ann.send(Method::PATCH, &path, version).await;
        assert_eq!(changed, StatusCode::OK);
        let mut tunnels = Vec::new();
        for (name, status) in [
            ("entrance", "Running"),
            ("hall-left", "Running"),
            ("hall-right", "Downloading"),
            ("platform-1", "Running"),
            ("platform-2", ""),
        ] {
            let known = known(&cloud, &shop.ann, shop.fleet).await;
            let path = format!("/v7/device({})", known.id);
            let named = json!({ "device_name": name });
            let (renamed, _) = shop.ann.send(Method::PATCH, &path, named).await;
            assert_eq!(renamed, StatusCode::OK);
            if status.is_empty() {
                continue;
            }
            tunnels.push(connect(&cloud, &known, Router::new()).await);
            let device = Device {
                id: known.id,
                signed: cloud.by(known.key),
                uuid: known.uuid,
            };
            device.state().await;
            let service = json!({
                "image": shop.release.locations[0], "status": status, "download_progress": 40,
            });
            let report = json!({
                "os_version": "Platform OS 2.88.4", "supervisor_version": "16.0.0",
                "apps": { &shop.uuid: {
                    "release_uuid": shop.release.commit,
                    "releases": { &shop.release.commit: { "services": { "main": service } } },
                } },
            });
            assert_eq!(device.report(report).await, StatusCode::OK);
        }
        let ann = ann(chromium, &cloud).await;
        ann.press("displays").await;
        ann.within("platform-1").see("Connected").await;
        let picture = ann.picture_of_window(1100, 680).await;
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(PICTURE);
        if std::env::var_os("UPDATE_DOCS").is_some() {
            std::fs::write(&file, &picture).expect("a picture");
        }
        // Fonts differ between machines, so only the size can be the same everywhere.
        let kept = std::fs::read(&file).expect("UPDATE_DOCS=1 makes it");
        assert_eq!(size(&kept), size(&picture), "UPDATE_DOCS=1 recreates it");
    })
    .await;
}

/// Returns the width and height of a PNG, which are at its beginning (RFC 2083, section 11.2.1).
fn size(png: &[u8]) -> &[u8] {
    assert!(png.starts_with(b"\x89PNG\r\n"), "not a PNG");
    png.get(16..24).expect("a whole PNG")
}
