//! Answers to a caller whose own requests use up their share of the database.

use std::pin::Pin;

use data::testing::{on_fresh_postgres, text};
use data::{Database, Options};
use futures::StreamExt as _;
use futures::future::join_all;
use futures::stream::FuturesUnordered;
use reqwest::{Method, Response, StatusCode};
use serde_json::json;

use crate::harness::{ApiCaller, Cloud, read};
use crate::severable::SeverableProxy;

/// Requests of one person that use the database at the same time.
const SHARE: usize = 4;
const BEYOND: usize = 8;

type Answers<'a> = FuturesUnordered<Pin<Box<dyn Future<Output = Response> + 'a>>>;

/// Signs ann in with a key, which replicas cache: her requests need no connection before they wait
/// for her share.
async fn by_key(cloud: &Cloud) -> ApiCaller<'_> {
    let ann = cloud.sign_in().await;
    let (status, key) = ann
        .send(
            Method::POST,
            "/api-key/user/full",
            json!({ "name": "deploys" }),
        )
        .await;
    assert_eq!(status, StatusCode::OK, "{key}");
    let ann = cloud.by(key.as_str().expect("a key").to_owned());
    ann.rows("/v7/device_tag?$select=id").await;
    ann
}

/// Sends more simultaneous requests of one person than their share.
fn more_than_a_share<'a>(ann: &'a ApiCaller<'_>) -> Answers<'a> {
    let ask = || async {
        let request = ann.ask(Method::GET, "/v7/device_tag?$select=id");
        request.send().await.expect("an answer")
    };
    let answers: Answers<'a> = FuturesUnordered::new();
    for _ in 0..SHARE + BEYOND {
        answers.push(Box::pin(ask()));
    }
    answers
}

/// Checks that the requests that wait for a turn are refused in this way, with a time to retry.
async fn refused(answers: &mut Answers<'_>, with: StatusCode, saying: &str) {
    for _ in 0..BEYOND {
        let answer = answers.next().await.expect("an answer");
        let retry_after = answer.headers().get("retry-after").cloned();
        let (status, body) = read(answer).await;
        assert_eq!(status, with, "{body}");
        assert!(body.to_string().contains(saying), "{body}");
        assert_eq!(retry_after.expect("when to ask again"), "1");
    }
}

async fn the_rest_is_answered(answers: Answers<'_>) {
    let statuses: Vec<_> = answers.map(|answer| answer.status()).collect().await;
    assert_eq!(statuses, [StatusCode::OK; SHARE]);
}

#[tokio::test(flavor = "multi_thread")]
async fn chaos_no_caller_is_rate_limited_while_the_database_is_unavailable() {
    on_fresh_postgres(async |database| {
        let (mut proxy, by_proxy) = SeverableProxy::to_database(&database).await;
        let cloud = Cloud::start(&by_proxy).await;
        let ann = by_key(&cloud).await;
        proxy.cut().await;
        let mut answers = more_than_a_share(&ann);
        let guests = (0..BEYOND).map(|_| async {
            let request = cloud.ask(Method::GET, "/v7/device_type?$select=id&$top=1");
            request.send().await.expect("an answer").status()
        });
        let (guests, ()) = tokio::join!(
            join_all(guests),
            refused(
                &mut answers,
                StatusCode::SERVICE_UNAVAILABLE,
                "the database is busy or unavailable",
            )
        );
        assert_eq!(guests, [StatusCode::SERVICE_UNAVAILABLE; BEYOND]);
        proxy.open().await;
        the_rest_is_answered(answers).await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn chaos_a_caller_who_uses_up_their_own_share_is_rate_limited() {
    on_fresh_postgres(async |database| {
        let cloud = Cloud::start(&database).await;
        let ann = by_key(&cloud).await;
        // Only this table cannot be read.
        let options = Options::default();
        let locking = Database::open(&database, &options).await;
        let locking = locking.expect("the database");
        let mut lock = locking.begin().await.expect("a transaction");
        let statement = text("LOCK TABLE device_tag IN ACCESS EXCLUSIVE MODE");
        lock.execute(&statement).await.expect("the lock");
        let mut answers = more_than_a_share(&ann);
        refused(
            &mut answers,
            StatusCode::TOO_MANY_REQUESTS,
            "Too Many Requests",
        )
        .await;
        lock.rollback().await.expect("its end");
        the_rest_is_answered(answers).await;
        locking.close().await;
    })
    .await;
}
