//! Who makes keys, and what keys may do.

use reqwest::{Method, StatusCode};
use serde_json::json;

use super::saying;
use crate::harness::on_both;

#[tokio::test]
async fn m4_a_session_that_is_not_fresh_makes_no_key_of_its_user() {
    on_both(async |cloud| {
        let ann = cloud.sign_in().await;
        let days = 3 * 24 * 3600 * 1000;
        let stale = saying(&cloud, &ann.token, |claims| {
            claims["authTime"] = json!(claims["authTime"].as_i64().expect("a time") - days);
        });
        let stale = cloud.by(stale.await);
        let (_, who) = stale.get("/user/v1/whoami").await;
        let key = json!({
            "actorType": "user", "actorTypeId": who["id"], "roles": ["named-user-api-key"],
            "name": "ci", "description": null, "expiryDate": null,
        });
        for path in [
            "/api-key/user/full",
            "/api-key/v2",
            "/api-key/v1",
            "/api-key/v2/",
        ] {
            let (status, why) = stale.send(Method::POST, path, key.clone()).await;
            assert_eq!(status, StatusCode::UNAUTHORIZED, "{path}");
            assert_eq!(why, json!("Fresh authentication token required"), "{path}");
            let (status, made) = ann.send(Method::POST, path, key.clone()).await;
            assert_eq!(status, StatusCode::OK, "{path}: {made}");
            let by_key = cloud.by(made.as_str().expect("a key").to_owned());
            let (status, _) = by_key.send(Method::POST, path, key.clone()).await;
            assert_eq!(status, StatusCode::UNAUTHORIZED, "{path} by a key");
        }
    })
    .await;
}

#[tokio::test]
async fn a4_the_second_version_of_making_keys_asks_until_when_they_are_good() {
    on_both(async |cloud| {
        let ann = cloud.sign_in().await;
        let fleet = ann.fleet("pump", "raspberrypi4-64").await;
        let mut key = json!({
            "actorType": "application", "actorTypeId": fleet, "roles": ["provisioning-api-key"],
        });
        let (status, why) = ann.send(Method::POST, "/api-key/v2", key.clone()).await;
        assert_eq!(status, StatusCode::BAD_REQUEST);
        assert!(why.to_string().contains("`expiryDate`"), "{why}");
        let (status, _) = ann.send(Method::POST, "/api-key/v1", key.clone()).await;
        assert_eq!(status, StatusCode::OK);
        for until in [json!(null), json!("2099-01-01T00:00:00.000Z")] {
            key["expiryDate"] = until;
            let (status, made) = ann.send(Method::POST, "/api-key/v2", key.clone()).await;
            assert_eq!(status, StatusCode::OK, "{made}");
        }
    })
    .await;
}
