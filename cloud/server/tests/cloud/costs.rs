//! What one request may cost (docs/security.md): whatever it asks, it is answered or refused soon, in little memory,
//! and the cloud goes on.

use std::time::{Duration, Instant};

use reqwest::{Method, StatusCode};
use serde_json::Value;

use crate::harness::{Cloud, on_both, read};

/// How long any request may take. Builds of tests are slow and have neighbours: the bounds themselves leave far less.
const SOON: Duration = Duration::from_secs(20);

/// What a guest is answered, soon.
async fn asked(cloud: &Cloud, path: &str) -> (StatusCode, Value) {
    let begun = Instant::now();
    let answer = cloud.ask(Method::GET, path).send().await;
    let answer = read(answer.expect("the cloud is there")).await;
    assert!(
        begun.elapsed() < SOON,
        "{:.100}: {:?}",
        path,
        begun.elapsed()
    );
    answer
}

fn text(body: &Value) -> &str {
    body.as_str().unwrap_or_default()
}

#[tokio::test]
async fn c1_lists_and_chains_of_any_length_are_answered_or_refused() {
    on_both(async |cloud| {
        let ones = |count: usize| vec!["1"; count].join(",");
        let chain = |of: &str, between: &str, count: usize| vec![of; count].join(between);
        let signed_in = cloud.sign_in().await;
        for count in [1, 9, 65, 1000] {
            let filters = [
                format!("id in ({})", ones(count)),
                format!("not(id in ({}))", ones(count)),
                chain("id eq 1", " or ", count),
                chain("id gt 0", " and ", count),
                format!("not({})", chain("slug ne 'x'", " and ", count)),
            ];
            for filter in filters {
                let path = format!("/v7/device_type/$count?$filter={filter}");
                let (status, body) = asked(&cloud, &path).await;
                assert_eq!(status, StatusCode::OK, "{filter:.60}: {body}");
                let (status, _) = signed_in.get(&path).await;
                assert_eq!(status, StatusCode::OK, "{filter:.60}");
            }
        }
        for filter in [
            format!("id in ({})", ones(3000)),
            format!("id in ({})", ones(30_000)),
            chain("id eq 1", " or ", 2500),
            chain("id eq 1", " and ", 2500),
        ] {
            let path = format!("/v7/device_type?$filter={filter}");
            let (status, body) = asked(&cloud, &path).await;
            assert_eq!(status, StatusCode::BAD_REQUEST, "{filter:.60}: {body}");
            assert!(text(&body).contains("1,000 items"), "{body}");
        }
        for filter in [
            format!("{}1 eq 1", "1 add ".repeat(5000)),
            format!(
                "{}slug eq 1",
                "is_of__cpu_architecture/device_type/".repeat(800)
            ),
        ] {
            let path = format!("/v7/device_type?$filter={filter}");
            let (status, body) = asked(&cloud, &path).await;
            assert_eq!(status, StatusCode::BAD_REQUEST, "{filter:.60}: {body}");
        }
        let (status, _) = asked(&cloud, "/ping").await;
        assert_eq!(status, StatusCode::OK);
    })
    .await;
}
