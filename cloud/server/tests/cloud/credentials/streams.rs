//! Streams end with the right that opened them.

use axum::Router;
use axum::body::Body;
use axum::routing::any;
use data::testing::sql;
use futures::{StreamExt as _, stream};
use reqwest::header::CONTENT_TYPE;
use reqwest::{Method, StatusCode};
use serde_json::json;
use tokio::time::timeout;

use crate::device_logs::{LogReader, line, open};
use crate::fake_device::{connect, known};
use crate::harness::{PASSWORD, PATIENCE, on_both};
use crate::shop::{Shop, until};

#[tokio::test]
async fn log_streams_end_with_the_session_key_password_or_membership_of_the_reader() {
    on_both(async |cloud| {
        let shop = Shop::open(&cloud).await;
        let device = shop.device(1).await;
        let path = format!("/device/v2/{}/logs", device.uuid);
        let batch = json!([line("one")]);
        assert_eq!(
            device.signed.send(Method::POST, &path, batch).await.0,
            StatusCode::CREATED
        );

        let session = cloud.sign_in().await;
        let mut following = LogReader::open(&session, &device, "&count=all").await;
        assert_eq!(following.message().await, "one");
        session
            .answer(session.ask(Method::POST, "/user/v1/sign-out"))
            .await;
        following.end().await;

        let made = shop
            .ann
            .send(Method::POST, "/api-key/user/full", json!({ "name": "ci" }))
            .await;
        let key = cloud.by(made.1.as_str().expect("a key").to_owned());
        let mut following = LogReader::open(&key, &device, "&count=all").await;
        assert_eq!(following.message().await, "one");
        let delete = "/v7/api_key?$filter=name%20eq%20'ci'";
        let (status, _) = shop.ann.answer(shop.ann.ask(Method::DELETE, delete)).await;
        assert_eq!(status, StatusCode::OK);
        following.end().await;

        let mut following = LogReader::open(&shop.ann, &device, "&count=all").await;
        assert_eq!(following.message().await, "one");
        let change = json!({ "currentPassword": PASSWORD, "newPassword": "another horse" });
        let changed = shop
            .ann
            .send(Method::POST, "/user/v1/change-password", change)
            .await;
        assert_eq!(changed.0, StatusCode::OK);
        following.end().await;

        // This change is not announced, and is found by the next check.
        let ann = cloud.by(changed.1.as_str().expect("a token").to_owned());
        let mut following = LogReader::open(&ann, &device, "&count=all").await;
        assert_eq!(following.message().await, "one");
        shop.execute(sql("DELETE FROM organization_membership"))
            .await;
        following.end().await;
    })
    .await;
}

#[tokio::test]
async fn a_device_whose_key_is_deleted_writes_no_more() {
    on_both(async |cloud| {
        let shop = Shop::open(&cloud).await;
        let device = shop.device(1).await;
        let (sender, request) = open(&device, None);
        let answer = tokio::spawn(request.send());
        let text = format!("{}\n", line("one"));
        sender.unbounded_send(text.into_bytes()).expect("a reader");
        until("a kept line", async || {
            let path = format!("/device/v2/{}/logs", device.uuid);
            shop.ann.get(&path).await.1.to_string().contains("one")
        })
        .await;
        let actor = shop.fields(&device, "actor").await["actor"]["__id"].clone();
        let path = format!("/v7/api_key?$filter=is_of__actor%20eq%20{actor}");
        assert_eq!(shop.ann.rows(&path).await.len(), 1);
        let (status, _) = shop.ann.answer(shop.ann.ask(Method::DELETE, &path)).await;
        assert_eq!(status, StatusCode::OK);
        let answer = timeout(PATIENCE, answer).await.expect("an end in time");
        let answer = answer.expect("the task").expect("an answer");
        assert_eq!(answer.status(), StatusCode::UNAUTHORIZED);
    })
    .await;
}

#[tokio::test]
async fn the_answer_of_a_device_ends_with_the_session_of_the_caller() {
    on_both(async |cloud| {
        let ann = cloud.sign_in().await;
        let fleet = ann.fleet("pump", "raspberrypi4-64").await;
        let journal = Router::new().route(
            "/v2/journal-logs",
            any(async || {
                let lines =
                    stream::iter([Ok::<_, std::io::Error>("{}\n")]).chain(stream::pending());
                (
                    [(CONTENT_TYPE, "application/x-ndjson")],
                    Body::from_stream(lines),
                )
            }),
        );
        let device = known(&cloud, &ann, fleet).await;
        let connection = connect(&cloud, &device, journal).await;
        let asking = cloud.sign_in().await;
        let body = json!({ "deviceId": device.id, "data": { "follow": true } });
        let mut answer = None;
        until("a connected device", async || {
            let request = asking
                .ask(Method::POST, "/supervisor/v2/journal-logs")
                .json(&body);
            let found = request.send().await.expect("an answer");
            found.status() == StatusCode::OK
        })
        .await;
        let request = asking
            .ask(Method::POST, "/supervisor/v2/journal-logs")
            .json(&body);
        let answer = answer.insert(request.send().await.expect("an answer"));
        assert_eq!(answer.status(), StatusCode::OK);
        assert!(answer.chunk().await.expect("a line").is_some());
        asking
            .answer(asking.ask(Method::POST, "/user/v1/sign-out"))
            .await;
        let end = async { while let Ok(Some(_)) = answer.chunk().await {} };
        timeout(PATIENCE, end).await.expect("an end in time");
        connection.abort();
    })
    .await;
}
