//! Operations on the whole cloud: who registers users, and who disables them.

use std::process::Command;

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::harness::{ApiCaller, Cloud, EMAIL, on_both};

async fn sign_in(cloud: &Cloud, name: &str, password: &str) -> (StatusCode, String) {
    let given = json!({ "username": name, "password": password });
    let answer = cloud.ask(Method::POST, "/login_").json(&given).send().await;
    let answer = answer.expect("an answer");
    (answer.status(), answer.text().await.expect("a text"))
}

fn new(name: &str) -> Value {
    json!({
        "username": name, "email": format!("{name}@other.example"), "password": "battery horse",
    })
}

/// Registers a person and signs them in.
async fn person<'a>(cloud: &'a Cloud, by: &ApiCaller<'_>, name: &str) -> ApiCaller<'a> {
    let (status, why) = by.send(Method::POST, "/user/register", new(name)).await;
    assert_eq!(status, StatusCode::CREATED, "{name}: {why}");
    let (status, token) = sign_in(cloud, name, "battery horse").await;
    assert_eq!(status, StatusCode::OK);
    cloud.by(token)
}

#[tokio::test]
async fn closed_registration_is_for_administrators_of_the_cloud() {
    on_both(async |cloud| {
        let ann = cloud.sign_in().await;
        let bob = person(&cloud, &ann, "bob").await;
        // Administering an organization is not enough to register somebody.
        let (status, _) = bob.send(Method::POST, "/user/register", new("carl")).await;
        assert_eq!(status, StatusCode::UNAUTHORIZED);
        let own = bob.rows("/v7/organization?$select=id").await[0]["id"].clone();
        let mut into = new("carl");
        into["organization"] = own;
        let (status, _) = bob.send(Method::POST, "/user/register", into).await;
        assert_eq!(status, StatusCode::UNAUTHORIZED);
        let (_, key) = ann
            .send(Method::POST, "/api-key/user/full", json!({ "name": "ci" }))
            .await;
        let key = cloud.by(key.as_str().expect("a key").to_owned());
        let (status, _) = key.send(Method::POST, "/user/register", new("carl")).await;
        assert_eq!(status, StatusCode::UNAUTHORIZED, "a key of hers");

        // Until an administrator of the cloud makes him one.
        let (_, whoami) = bob.get("/user/v1/whoami").await;
        let his = format!("/cloud/v1/users/{}", whoami["id"]);
        let mark = json!({ "is_cloud_administrator": true });
        let (status, _) = bob.send(Method::PATCH, &his, mark.clone()).await;
        assert_eq!(status, StatusCode::UNAUTHORIZED);
        let (status, _) = bob
            .send(
                Method::PATCH,
                "/v7/user(2)",
                json!({ "is_cloud_administrator": true }),
            )
            .await;
        assert_eq!(status, StatusCode::UNAUTHORIZED);
        assert_eq!(ann.send(Method::PATCH, &his, mark).await.0, StatusCode::OK);
        person(&cloud, &bob, "carl").await;
    })
    .await;
}

#[tokio::test]
async fn administrators_of_the_cloud_list_users_and_keep_them_out() {
    on_both(async |cloud| {
        let ann = cloud.sign_in().await;
        let bob = person(&cloud, &ann, "bob").await;
        let (_, key) = bob.send(Method::POST, "/api-key/user/full", json!({ "name": "ci" })).await;
        let key = cloud.by(key.as_str().expect("a key").to_owned());
        let (_, whoami) = bob.get("/user/v1/whoami").await;
        let (ann_id, bob_id) = (ann.get("/user/v1/whoami").await.1["id"].clone(), whoami["id"].clone());
        let (status, listed) = ann.get("/cloud/v1/users").await;
        assert_eq!(status, StatusCode::OK);
        assert_eq!(listed["d"], json!([
            { "id": ann_id, "username": "admin", "email": EMAIL, "is_cloud_administrator": true, "is_disabled": false },
            { "id": bob_id, "username": "bob", "email": "bob@other.example", "is_cloud_administrator": false, "is_disabled": false },
        ]));
        let (_, rest) = ann.get(&format!("/cloud/v1/users?after={bob_id}")).await;
        assert_eq!(rest["d"], json!([]));
        assert_eq!(ann.get("/cloud/v1/users?after=x").await.0, StatusCode::BAD_REQUEST);
        for other in [&bob, &key] {
            assert_eq!(other.get("/cloud/v1/users").await.0, StatusCode::UNAUTHORIZED);
        }
        let guest = cloud.ask(Method::GET, "/cloud/v1/users").send().await;
        assert_eq!(guest.expect("an answer").status(), StatusCode::UNAUTHORIZED);

        let his = format!("/cloud/v1/users/{bob_id}");
        let say = async |path: &str, body: Value| ann.send(Method::PATCH, path, body).await.0;
        for (path, body, status) in [
            (format!("/cloud/v1/users/{ann_id}"), json!({ "is_disabled": true }), StatusCode::BAD_REQUEST),
            ("/cloud/v1/users/9999".to_owned(), json!({ "is_disabled": true }), StatusCode::NOT_FOUND),
            (his.clone(), json!({ "password": "x" }), StatusCode::BAD_REQUEST),
            (his.clone(), json!({ "is_disabled": true }), StatusCode::OK),
        ] {
            assert_eq!(say(&path, body.clone()).await, status, "{path} {body}");
        }
        assert_eq!(bob.get("/user/v1/whoami").await.0, StatusCode::UNAUTHORIZED, "his session ended");
        assert_eq!(key.get("/user/v1/whoami").await.0, StatusCode::UNAUTHORIZED, "and his key");
        assert_eq!(sign_in(&cloud, "bob", "battery horse").await.0, StatusCode::UNAUTHORIZED);
        assert_eq!(say(&his, json!({ "is_disabled": false })).await, StatusCode::OK);
        assert_eq!(sign_in(&cloud, "bob", "battery horse").await.0, StatusCode::OK);
    })
    .await;
}

#[tokio::test]
async fn a_forgotten_password_is_reset_where_the_cloud_runs() {
    on_both(async |cloud| {
        let ann = cloud.sign_in().await;
        let reset = |email: &str| {
            Command::new(env!("CARGO_BIN_EXE_fleet-cloud"))
                .args(["reset-password", email, "--database", &cloud.database])
                .output()
                .expect("the program")
        };
        let nobody = reset("nobody@acme.example");
        assert!(!nobody.status.success());
        assert!(String::from_utf8_lossy(&nobody.stderr).contains("`nobody@acme.example`"));
        let done = reset(&EMAIL.to_uppercase());
        assert!(
            done.status.success(),
            "{}",
            String::from_utf8_lossy(&done.stderr)
        );
        let password = String::from_utf8(done.stdout).expect("a text");
        assert_eq!(
            sign_in(&cloud, "admin", password.trim()).await.0,
            StatusCode::OK
        );
        assert_eq!(
            ann.get("/user/v1/whoami").await.0,
            StatusCode::UNAUTHORIZED,
            "sessions ended"
        );
    })
    .await;
}
