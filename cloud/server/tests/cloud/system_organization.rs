//! The organization of the platform's own systems, and attempts to imitate it.

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::harness::{ApiCaller, Cloud, on_both};

/// Names that people would mistake for the platform's.
const RESERVED: [&str; 6] = [
    "platform_os",
    "PLATFORM_OS",
    "Platform OS",
    "platform__os",
    "platform",
    "legacy",
];

/// Signs in.
async fn signed<'a>(cloud: &'a Cloud, name: &str) -> ApiCaller<'a> {
    let given = json!({ "username": name, "password": "battery horse" });
    let answer = cloud.ask(Method::POST, "/login_").json(&given).send().await;
    let answer = answer.expect("an answer");
    assert_eq!(answer.status(), StatusCode::OK, "{name}");
    cloud.by(answer.text().await.expect("a token"))
}

/// Registers a person with an organization of their own, by a caller who may, and signs them in.
async fn person<'a>(cloud: &'a Cloud, by: &ApiCaller<'_>, name: &str) -> ApiCaller<'a> {
    let body = json!({
        "username": name, "email": format!("{name}@other.example"), "password": "battery horse",
    });
    let (status, why) = by.send(Method::POST, "/user/register", body).await;
    assert_eq!(status, StatusCode::CREATED, "{name}: {why}");
    signed(cloud, name).await
}

#[tokio::test]
async fn the_handle_of_the_system_is_nobodys_to_take() {
    on_both(async |cloud| {
        let ann = cloud.sign_in().await;
        let mallory = person(&cloud, &ann, "mallory").await;
        let refused = |(status, why): (StatusCode, Value), what: &str| {
            assert_eq!(status, StatusCode::BAD_REQUEST, "{what}: {why}");
        };
        let id = mallory.rows("/v7/organization?$select=id").await[0]["id"].clone();
        let path = &format!("/v7/organization({id})");
        for name in RESERVED {
            let body = json!({ "name": "x", "handle": name });
            refused(
                mallory
                    .send(Method::POST, "/v7/organization", body.clone())
                    .await,
                name,
            );
            refused(
                mallory
                    .send(Method::POST, "/v6/organization", body.clone())
                    .await,
                name,
            );
            refused(
                mallory
                    .send(Method::PATCH, path, json!({ "handle": name }))
                    .await,
                name,
            );
            refused(mallory.send(Method::PUT, path, body).await, name);
            let user = json!({
                "username": name, "email": "x@other.example", "password": "battery horse",
            });
            refused(ann.send(Method::POST, "/user/register", user).await, name);
        }
        let put = "/v7/organization(handle='platform_os')";
        let (status, _) = mallory.send(Method::PUT, put, json!({ "name": "x" })).await;
        assert!(status.is_client_error(), "{status}");
        assert_eq!(
            mallory.rows("/v7/organization?$select=handle").await,
            [json!({ "handle": "mallory" })]
        );
    })
    .await;
}

#[tokio::test]
async fn administrators_of_the_cloud_alone_join_the_organization_of_the_system() {
    on_both(async |cloud| {
        let path = "/cloud/v1/system-organization";
        let ann = cloud.sign_in().await;
        let mallory = person(&cloud, &ann, "mallory").await;
        let guest = cloud.ask(Method::POST, path).json(&json!({})).send().await;
        assert_eq!(guest.expect("an answer").status(), StatusCode::UNAUTHORIZED);
        assert_eq!(mallory.send(Method::POST, path, json!({})).await.0, StatusCode::UNAUTHORIZED);
        let key = ann.send(Method::POST, "/api-key/user/full", json!({ "name": "ci" })).await.1;
        let key = cloud.by(key.as_str().expect("a key").to_owned());
        assert_eq!(key.send(Method::POST, path, json!({})).await.0, StatusCode::UNAUTHORIZED);

        // Nobody belongs to it automatically: members of a single organization need not name it.
        assert_eq!(ann.rows("/v7/organization?$select=id").await.len(), 1);
        for _ in 0..2 {
            let (status, joined) = ann.send(Method::POST, path, json!({})).await;
            assert_eq!((status, joined["handle"].as_str()), (StatusCode::OK, Some("platform_os")));
        }
        let its = "/v7/organization(handle='platform_os')";
        assert_eq!(ann.rows(&format!("{its}?$select=is_system")).await, [json!({ "is_system": true })]);
        // It belongs to the cloud, and cannot be changed.
        let (status, why) = ann.send(Method::PATCH, its, json!({ "handle": "other" })).await;
        assert_eq!(status, StatusCode::BAD_REQUEST, "{why}");
        let (status, why) = ann.answer(ann.ask(Method::DELETE, its)).await;
        assert_eq!(status, StatusCode::BAD_REQUEST, "{why}");
        let (status, _) = ann.send(Method::PATCH, its, json!({ "is_system": false })).await;
        assert_eq!(status, StatusCode::OK);
        assert_eq!(ann.rows(&format!("{its}?$select=is_system")).await, [json!({ "is_system": true })]);
        // And those who joined may leave.
        let left = "/v7/organization_membership?$filter=is_member_of__organization/any(o:o/handle eq 'platform_os')".to_owned();
        let (status, why) = ann.answer(ann.ask(Method::DELETE, &left)).await;
        assert_eq!(status, StatusCode::OK, "{why}");
        assert_eq!(ann.rows("/v7/organization?$select=id").await.len(), 1);
        let mut own = mallory.rows("/v7/organization?$select=handle,is_system").await;
        assert_eq!(own.pop(), Some(json!({ "handle": "mallory", "is_system": false })));
    })
    .await;
}

#[tokio::test]
async fn the_target_of_a_device_holds_no_supervisor_of_another_tenant() {
    on_both(async |cloud| {
        let ann = cloud.sign_in().await;
        let mallory = person(&cloud, &ann, "mallory").await;
        let hers = mallory.fleet("x-supervisor", "raspberrypi4-64").await;
        let public = format!("/v7/application({hers})");
        let (status, _) = mallory.send(Method::PATCH, &public, json!({ "is_public": true })).await;
        assert_eq!(status, StatusCode::OK);
        let release = json!({
            "belongs_to__application": hers, "commit": "c0ffee", "semver": "13.1.0", "status": "success",
            "source": "cloud", "start_timestamp": 1,
            "composition": { "services": { "main": { "privileged": true, "network_mode": "host" } } },
        });
        mallory.create("release", release).await;
        let fleet = ann.fleet("pump", "raspberrypi4-64").await;
        let path = format!("/api-key/application/{fleet}/provisioning");
        let key = ann.send(Method::POST, &path, json!({})).await.1;
        let key = cloud.by(key.as_str().expect("a key").to_owned());
        let uuid = "0123456789abcdef0123456789abcdef";
        let device = json!({
            "application": fleet, "device_type": "raspberrypi4-64", "uuid": uuid,
            "supervisor_version": "13.1.0", "os_version": "Platform OS 5.0.0",
        });
        let (status, device) = key.send(Method::POST, "/device/register", device).await;
        assert_eq!(status, StatusCode::CREATED, "{device}");
        let device = cloud.by(device["api_key"].as_str().expect("a key").to_owned());
        let (status, state) = device.get(&format!("/device/v3/{uuid}/state")).await;
        assert_eq!(status, StatusCode::OK);
        let apps = state[uuid]["apps"].as_object().expect("apps");
        assert_eq!(apps.len(), 1, "{state}");
        assert_eq!(apps.values().next().expect("one")["id"], fleet);
    })
    .await;
}
