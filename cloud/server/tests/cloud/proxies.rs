//! Proxies in front of the cloud.

use http::StatusCode;
use reqwest::Method;
use reqwest::redirect::Policy;

use crate::harness::{Cloud, client, plain_http};

/// Sends a request without a credential, forwarded by a proxy.
async fn status(cloud: &Cloud, forwarded_for: &str) -> StatusCode {
    let request = cloud.ask(Method::GET, "/v7/device_type?$select=id");
    let request = request.header("X-Forwarded-For", forwarded_for);
    request.send().await.expect("an answer").status()
}

#[tokio::test]
async fn callers_behind_a_trusted_proxy_are_distinguished() {
    data::testing::on_fresh(async |url| {
        let settings = "trusted_proxies = ['127.0.0.0/8']\n[limits]\nrequests_per_minute = 3";
        let cloud = Cloud::start_with(&url, settings).await;
        for caller in ["192.0.2.1", "192.0.2.2, 127.0.0.9"] {
            for _ in 0..3 {
                assert_eq!(status(&cloud, caller).await, StatusCode::OK, "{caller}");
            }
            let refused = status(&cloud, caller).await;
            assert_eq!(refused, StatusCode::TOO_MANY_REQUESTS, "{caller}");
        }
        // Entries written by the caller precede the one that the proxy adds.
        let pretended = status(&cloud, "192.0.2.77, 192.0.2.1").await;
        assert_eq!(pretended, StatusCode::TOO_MANY_REQUESTS);
    })
    .await;
}

#[tokio::test]
async fn nobody_else_says_who_asks() {
    data::testing::on_fresh(async |url| {
        let settings = "[limits]\nrequests_per_minute = 3";
        let cloud = Cloud::start_with(&url, settings).await;
        for number in 0..3 {
            let caller = format!("192.0.2.{number}");
            assert_eq!(status(&cloud, &caller).await, StatusCode::OK);
        }
        assert_eq!(
            status(&cloud, "192.0.2.9").await,
            StatusCode::TOO_MANY_REQUESTS
        );
    })
    .await;
}

#[tokio::test]
async fn callers_that_bypass_the_proxies_are_redirected_to_the_encrypted_address() {
    // Installs a provider of cryptography for a client of our own.
    let _ = client();
    data::testing::on_fresh(async |url| {
        let settings = "trusted_proxies = ['192.0.2.0/24']\npublic_url = 'https://fleet.example/'";
        let cloud = Cloud::start_with(&url, settings).await;
        let client = plain_http().redirect(Policy::none());
        let client = client.build().expect("a client");
        let get = async |path: &str| {
            let request = cloud.ask(Method::GET, path).build().expect("a request");
            client.execute(request).await.expect("an answer")
        };
        let answer = get("/v7/device?$select=id&$filter=uuid%20eq%20%27a%2Fb%27").await;
        assert_eq!(answer.status(), StatusCode::MOVED_PERMANENTLY);
        assert_eq!(
            answer.headers()["location"],
            "https://fleet.example/v7/device?$select=id&$filter=uuid%20eq%20%27a%2Fb%27"
        );
        for path in ["/ping", "/health"] {
            let answer = get(path).await;
            assert_eq!(answer.status(), StatusCode::OK);
            assert_eq!(
                answer.headers()["strict-transport-security"],
                "max-age=31536000"
            );
        }
    })
    .await;
}
