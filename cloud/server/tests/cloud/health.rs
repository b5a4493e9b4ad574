//! The health endpoints for load balancers of replicas.

use data::testing::{on_fresh, on_fresh_postgres};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::harness::{Cloud, read};
use crate::reach::until;
use crate::severable::SeverableProxy;

async fn health(cloud: &Cloud) -> (StatusCode, Value) {
    let answer = cloud.ask(Method::GET, "/health").send().await;
    read(answer.expect("an answer")).await
}

fn says(status: &str) -> Value {
    json!({ "status": status, "checks": { "database": [{ "status": status }] } })
}

#[tokio::test]
async fn a_working_cloud_passes_the_health_check_for_everybody_without_a_rate_limit() {
    on_fresh(async |database| {
        let limited = "[limits]\nrequests_per_minute = 5";
        let cloud = Cloud::start_with(&database, limited).await;
        for _ in 0..20 {
            assert_eq!(health(&cloud).await, (StatusCode::OK, says("pass")));
        }
        let answer = cloud.ask(Method::GET, "/health").send().await;
        let headers = answer.expect("an answer").headers().clone();
        assert_eq!(headers["content-type"], "application/health+json");
        assert_eq!(headers["cache-control"], "no-store");
    })
    .await;
}

// The proxy keeps running while the test waits for the cloud to start.
#[tokio::test(flavor = "multi_thread")]
async fn a_cloud_whose_database_is_away_says_so_until_it_is_back() {
    on_fresh_postgres(async |database| {
        let (mut proxy, by_proxy) = SeverableProxy::to_database(&database).await;
        let cloud = Cloud::start(&by_proxy).await;
        assert_eq!(health(&cloud).await, (StatusCode::OK, says("pass")));
        let status = async |path: &str| {
            let answer = cloud.ask(Method::GET, path).send().await;
            read(answer.expect("an answer")).await
        };
        let lives = (StatusCode::OK, json!({ "status": "pass" }));
        assert_eq!(
            status("/health/ready").await,
            (StatusCode::OK, says("pass"))
        );
        assert_eq!(status("/health/live").await, lives);
        proxy.cut().await;
        let away = (StatusCode::SERVICE_UNAVAILABLE, says("fail"));
        until("it is away", async || {
            (health(&cloud).await == away).then_some(())
        })
        .await;
        assert_eq!(status("/health/ready").await, away);
        assert_eq!(
            status("/health/live").await,
            lives,
            "a restart would bring nothing back"
        );
        proxy.open().await;
        let back = (StatusCode::OK, says("pass"));
        until("it is back", async || {
            (health(&cloud).await == back).then_some(())
        })
        .await;
    })
    .await;
}
