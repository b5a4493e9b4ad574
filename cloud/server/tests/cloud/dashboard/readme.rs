//! The picture of the dashboard in README.md, with its text in a file next to it. `UPDATE_DOCS=1` recreates both.
//!
//! Fonts differ between machines, so pictures of the same page do too. The text does not: if the page has another text
//! than the file, the picture is of an older dashboard.

use std::path::Path;

use axum::Router;
use http::StatusCode;
use reqwest::Method;
use serde_json::json;

use super::browser::Visitor;
use super::{ann, with_browser};
use crate::fake_device::{connect, known};
use crate::shop::{Device, Shop};

const PICTURE: &str = "../../docs/pictures/dashboard.png";
const TEXT: &str = "../../docs/pictures/dashboard.txt";

#[tokio::test]
async fn the_readme_shows_a_fleet_as_the_dashboard_does() {
    with_browser(async |cloud, chromium| {
        let shop = Shop::named(&cloud, "displays").await;
        let path = format!("/v7/release({})", shop.release.id);
        let version = json!({ "semver": "1.4.0" });
        let (changed, _) = shop.ann.send(Method::PATCH, &path, version).await;
        assert_eq!(changed, StatusCode::OK);
        let (mut tunnels, mut uuids) = (Vec::new(), Vec::new());
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
            uuids.push(known.uuid.clone());
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
        for name in ["entrance", "hall-left", "hall-right", "platform-1"] {
            ann.within(name).see("Connected").await;
        }
        let picture = ann.picture_of_window(1100, 680).await;
        let text = visible_text(&ann, &uuids).await;
        let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
        let [picture_file, text_file] = [PICTURE, TEXT].map(|file| folder.join(file));
        if std::env::var_os("UPDATE_DOCS").is_some() {
            std::fs::write(&picture_file, &picture).expect("a picture");
            std::fs::write(&text_file, &text).expect("a text");
        }
        let kept = std::fs::read(&picture_file).expect("UPDATE_DOCS=1 creates it");
        assert_eq!(size(&kept), size(&picture), "UPDATE_DOCS=1 recreates it");
        let kept = std::fs::read_to_string(&text_file).expect("UPDATE_DOCS=1 creates it");
        assert_eq!(
            kept, text,
            "the picture is stale: UPDATE_DOCS=1 recreates it"
        );
    })
    .await;
}

/// Returns the visible text of the page, a line for each line or cell of it. Uuids, of which the page shows the
/// beginning, are random, so each is replaced by the same word.
async fn visible_text(visitor: &Visitor, uuids: &[String]) -> String {
    let text = visitor.script("document.body.innerText").await;
    let mut text = text.as_str().expect("a text").to_owned();
    for uuid in uuids {
        let beginning = uuid.get(..7).expect("a long uuid");
        assert!(text.contains(beginning), "{uuid}: {text}");
        text = text.replace(beginning, "(uuid)");
    }
    let lines = text.split(['\n', '\t']).map(str::trim);
    lines
        .filter(|line| !line.is_empty())
        .map(|line| format!("{line}\n"))
        .collect()
}

/// Returns the width and height of a PNG, which are at its beginning (RFC 2083, section 11.2.1).
fn size(png: &[u8]) -> &[u8] {
    assert!(png.starts_with(b"\x89PNG\r\n"), "not a PNG");
    png.get(16..24).expect("a whole PNG")
}
