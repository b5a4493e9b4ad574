//! Refused requests count like answered ones, and their bodies are not read first.

use reqwest::{Method, StatusCode};
use serde_json::json;

use crate::harness::Cloud;

/// Addresses that accept a credential, and so could be used to try many.
const DOORS: [(&str, &str); 14] = [
    ("GET", "/v7/device"),
    ("POST", "/v7/device/canAccess"),
    ("PATCH", "/v7/device(1)"),
    ("GET", "/user/v1/whoami"),
    ("GET", "/actor/v1/whoami"),
    ("POST", "/user/register"),
    ("POST", "/user/v1/refresh-token"),
    ("POST", "/user/v1/change-password"),
    ("POST", "/api-key/user/full"),
    ("POST", "/api-key/v2"),
    ("GET", "/auth/v1/token"),
    ("POST", "/supervisor/v1/blink"),
    ("GET", "/device/v3/0123/tunnel"),
    ("GET", "/device/v3/fleet/0123/state"),
];

#[tokio::test]
async fn bad_credentials_are_counted_as_answered_requests_are() {
    let folder = tempfile::tempdir().expect("a folder");
    for (method, path) in DOORS {
        let database = folder.path().join(path.replace(['/', '(', ')'], "_"));
        let database = format!("sqlite:{}", database.display());
        let cloud = Cloud::start_with(&database, "[limits]\nrequests_per_minute = 5\n").await;
        let ask = async |number: u32| {
            let method = Method::from_bytes(method.as_bytes()).expect("a method");
            let request = cloud.ask(method, path).json(&json!({}));
            let request = request.bearer_auth(format!("guessed-{number:032}"));
            request.send().await.expect("an answer").status()
        };
        for number in 0..5 {
            assert_eq!(ask(number).await, StatusCode::UNAUTHORIZED, "{path}");
        }
        let refused = async {
            for number in 5..10 {
                if ask(number).await == StatusCode::TOO_MANY_REQUESTS {
                    return true;
                }
            }
            false
        };
        assert!(refused.await, "{method} {path} is not counted");
    }
}

#[tokio::test]
async fn a_caller_without_a_credential_cannot_send_long_bodies() {
    let folder = tempfile::tempdir().expect("a folder");
    let cloud = Cloud::start(&format!("sqlite:{}", folder.path().join("a").display())).await;
    let long = "x".repeat(66_000);
    for (path, expected) in [
        ("/login_", StatusCode::PAYLOAD_TOO_LARGE),
        ("/download-config", StatusCode::PAYLOAD_TOO_LARGE),
        // Refused before the body is read.
        ("/user/register", StatusCode::UNAUTHORIZED),
        ("/api-key/user/full", StatusCode::UNAUTHORIZED),
        ("/device/register", StatusCode::UNAUTHORIZED),
        ("/supervisor/v1/blink", StatusCode::UNAUTHORIZED),
    ] {
        let body = json!({ "username": long, "password": "battery horse" });
        let answer = cloud.ask(Method::POST, path).json(&body).send().await;
        assert_eq!(answer.expect("an answer").status(), expected, "{path}");
    }
}
