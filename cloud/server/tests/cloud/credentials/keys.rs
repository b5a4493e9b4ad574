//! Who may create keys, and what keys may do.

use std::time::Instant;

use reqwest::{Method, StatusCode};
use serde_json::json;

use super::saying;
use crate::harness::{Cloud, PATIENCE, on_both};

#[tokio::test]
async fn a_session_that_is_not_fresh_makes_no_key_of_its_user() {
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
async fn the_second_version_of_making_keys_asks_until_when_they_are_good() {
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

#[tokio::test]
async fn a_key_makes_no_people_organizations_or_keys() {
    on_both(async |cloud| {
        let ann = cloud.sign_in().await;
        let made = ann.send(Method::POST, "/api-key/user/full", json!({ "name": "ci" })).await;
        let key = cloud.by(made.1.as_str().expect("a key").to_owned());
        let organization = ann.rows("/v7/organization?$select=id").await[0]["id"].clone();
        for (path, body) in [
            ("/v7/organization", json!({ "name": "pumps", "handle": "pumps" })),
            ("/v7/team", json!({ "name": "t", "belongs_to__organization": organization })),
            (
                "/v7/organization_invite",
                json!({ "invitee": "eve@example.com", "is_invited_to__organization": organization }),
            ),
            (
                "/user/register",
                json!({ "username": "eve", "email": "eve@example.com", "password": "battery horse" }),
            ),
            ("/api-key/user/full", json!({ "name": "more" })),
        ] {
            let (status, why) = key.send(Method::POST, path, body).await;
            assert_eq!(status, StatusCode::UNAUTHORIZED, "{path}: {why}");
        }
        let path = format!("/v7/organization({organization})");
        let patched = key.send(Method::PATCH, &path, json!({ "name": "mine" })).await;
        assert_eq!(patched.0, StatusCode::UNAUTHORIZED);
        // It can change anything but credentials, as its user can.
        assert!(key.fleet("pump", "raspberrypi4-64").await > 0);
    })
    .await;
}

#[tokio::test]
async fn a_key_does_what_its_scope_is_for_in_its_fleet_and_nothing_else() {
    on_both(async |cloud| {
        let ann = cloud.sign_in().await;
        let (pump, valve) = (
            ann.fleet("pump", "raspberrypi4-64").await,
            ann.fleet("valve", "raspberrypi4-64").await,
        );
        let board = ann.rows("/v7/device_type(slug='raspberrypi4-64')?$select=id").await;
        let board = board[0]["id"].clone();
        let device = async |fleet: i64| {
            let body = json!({ "belongs_to__application": fleet, "is_of__device_type": board });
            ann.create("device", body).await
        };
        let (in_pump, in_valve) = (device(pump).await, device(valve).await);
        let key = async |scope: Option<&str>, fleet: Option<i64>| {
            let body = json!({ "name": "ci", "scope": scope, "applicationId": fleet });
            let (status, made) = ann.send(Method::POST, "/api-key/user/full", body).await;
            assert_eq!(status, StatusCode::OK, "{made}");
            cloud.by(made.as_str().expect("a key").to_owned())
        };
        let release = |fleet: i64, commit: &str| {
            json!({
                "belongs_to__application": fleet, "commit": commit.repeat(40), "composition": {},
                "status": "success", "source": "cloud", "start_timestamp": "2026-01-01T00:00:00.000Z",
            })
        };
        let variable =
            |fleet: i64, name: &str| json!({ "application": fleet, "name": name, "value": "b" });
        let tag =
            |device: i64, name: &str| json!({ "device": device, "tag_key": name, "value": "b" });
        let mut commits = "0123456789abcdef".chars().map(String::from);
        for (scope, fleet, may) in [
            (Some("read"), None, [false, false, false, false, false]),
            (Some("deploy"), None, [true, true, false, false, false]),
            (Some("deploy"), Some(pump), [true, false, false, false, false]),
            (Some("device"), None, [false, false, false, true, true]),
            (Some("device"), Some(pump), [false, false, false, true, false]),
            (Some("fleet"), Some(pump), [true, false, true, true, false]),
            (None, Some(pump), [true, false, true, true, false]),
        ] {
            let key = key(scope, fleet).await;
            let (one, other) = (commits.next().expect("one"), commits.next().expect("one"));
            let tries = [
                ("release", release(pump, &one)),
                ("release", release(valve, &other)),
                ("application_environment_variable", variable(pump, &format!("A{one}"))),
                ("device_tag", tag(in_pump, &one)),
                ("device_tag", tag(in_valve, &one)),
            ];
            for ((resource, body), may) in tries.into_iter().zip(may) {
                let path = format!("/v7/{resource}");
                let (status, why) = key.send(Method::POST, &path, body.clone()).await;
                let done = status == StatusCode::CREATED;
                assert_eq!(done, may, "{scope:?} {fleet:?}: {resource} {body}: {status} {why}");
            }
            let seen = key.rows("/v7/application?$select=id&$orderby=id").await.len();
            assert_eq!(seen, if fleet.is_some() { 1 } else { 2 }, "{scope:?} {fleet:?}");
            let seen = key.rows("/v7/device?$select=id").await.len();
            assert_eq!(seen, if fleet.is_some() { 1 } else { 2 }, "{scope:?} {fleet:?}");
            let through = "/v7/organization?$expand=application($select=id)";
            for organization in key.rows(through).await {
                let fleets = organization["application"].as_array().expect("fleets").len();
                assert!(fleets <= if fleet.is_some() { 1 } else { 2 });
            }
            // A key cannot create another.
            let path = format!("/api-key/application/{pump}/provisioning");
            let (status, _) = key.send(Method::POST, &path, json!({})).await;
            assert_eq!(status, StatusCode::UNAUTHORIZED, "{scope:?}");
        }
        let wrong = json!({ "name": "ci", "scope": "everything" });
        let (status, why) = ann.send(Method::POST, "/api-key/user/full", wrong).await;
        assert_eq!(status, StatusCode::BAD_REQUEST);
        assert!(why.to_string().contains("`everything`"), "{why}");
    })
    .await;
}

#[tokio::test]
async fn a_key_tells_when_it_was_last_used_and_ends_by_default_where_that_is_set() {
    on_both(async |cloud| {
        let database = cloud.database.clone();
        cloud.end().await;
        let cloud = Cloud::start_with(&database, "[credentials]\nkey_days = 7\n").await;
        let ann = cloud.sign_in().await;
        let made = ann
            .send(Method::POST, "/api-key/user/full", json!({ "name": "ci" }))
            .await;
        let key = cloud.by(made.1.as_str().expect("a key").to_owned());
        let row = async || {
            let rows = ann.rows("/v7/api_key?$filter=name%20eq%20'ci'").await;
            rows[0].clone()
        };
        let before = row().await;
        assert!(before["expiry_date"].is_string(), "{before}");
        assert_eq!(before["last_used_at"], json!(null));
        assert_eq!(key.get("/user/v1/whoami").await.0, StatusCode::OK);
        let begun = Instant::now();
        while row().await["last_used_at"].is_null() {
            assert!(begun.elapsed() < PATIENCE, "it is never noted");
            tokio::task::yield_now().await;
        }
    })
    .await;
}
