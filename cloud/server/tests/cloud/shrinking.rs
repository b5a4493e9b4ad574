//! The SQLite file shrinks after much data was deleted.

use std::sync::atomic::{AtomicU32, Ordering};

use reqwest::{Method, StatusCode};
use serde_json::json;

use crate::harness::{Cloud, read};
use crate::shop::{Shop, until};

#[tokio::test]
async fn the_file_of_the_database_shrinks_after_much_was_deleted() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("cloud.sqlite");
    let cloud = Cloud::start(&format!("sqlite:{}", file.display())).await;
    let shop = Shop::open(&cloud).await;
    let size = || std::fs::metadata(&file).map_or(0, |about| about.len());
    let text = |name: &str, value: &str| {
        format!("--b\r\ncontent-disposition: form-data; name=\"{name}\"\r\n\r\n{value}\r\n")
    };
    let head = "content-disposition: form-data; name=\"asset\"; filename=\"x\"";
    let release = text("release", &shop.release.id.to_string());
    let body = format!(
        "{release}{}--b\r\n{head}\r\n\r\n{}\r\n--b--\r\n",
        text("asset_key", "large"),
        "x".repeat(40 << 20)
    );
    let request = shop.ann.ask(Method::POST, "/v7/release_asset").body(body);
    let request = request.header("content-type", "multipart/form-data; boundary=b");
    let (status, made) = read(request.send().await.expect("an answer")).await;
    assert_eq!(status, StatusCode::CREATED, "{made}");
    until("all of it is in the file", || async { size() > 40 << 20 }).await;
    let path = format!("/v7/release_asset({})", made["id"]);
    let (status, _) = shop.ann.answer(shop.ann.ask(Method::DELETE, &path)).await;
    assert_eq!(status, StatusCode::OK);
    // Writers continue in the meantime.
    let number = AtomicU32::new(0);
    until("the file is small again", || async {
        let number = number.fetch_add(1, Ordering::Relaxed) % 400;
        let tag =
            json!({ "application": shop.fleet, "tag_key": format!("t{number}"), "value": "x" });
        let path = format!(
            "/v7/application_tag(application={},tag_key='t{number}')",
            shop.fleet
        );
        let (status, why) = shop.ann.send(Method::PUT, &path, tag).await;
        assert!(status.is_success(), "{why}");
        size() <= 12 << 20
    })
    .await;
    cloud.end().await;
    crate::fuzz::whole(&format!("sqlite:{}", file.display())).await;
}
