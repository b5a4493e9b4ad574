//! Lines accepted by one replica, read and followed at another.

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use super::{on_two, on_two_with};
use crate::device_logs::{LogReader, line, messages, open};
use crate::shop::{Device, Shop, until};

/// Sends one line; returns the status.
async fn send(device: &Device<'_>, message: &str) -> StatusCode {
    let path = format!("/device/v2/{}/logs", device.uuid);
    let lines = json!([line(message)]);
    device.signed.send(Method::POST, &path, lines).await.0
}

#[tokio::test]
async fn lines_are_read_back_and_followed_at_every_replica() {
    on_two(async |two| {
        let shop = Shop::open(&two.a).await;
        let device = shop.device(1).await;
        let other = shop.device(2).await;
        let at_b = two.b.by(shop.ann.token.clone());
        let path = format!("/device/v2/{}/logs", device.uuid);
        until("the stream is there", async || {
            send(&other, "of another device").await == StatusCode::CREATED
        })
        .await;
        let lines = json!([
            { "timestamp": 5, "message": "one", "isStdErr": true, "serviceId": 21 },
            { "timestamp": 6, "message": "two", "isSystem": true },
        ]);
        let answer = device.signed.send(Method::POST, &path, lines).await;
        assert_eq!(answer, (StatusCode::CREATED, Value::Null));
        // Acknowledged lines are there, whichever replica is asked.
        let (_, mut read_back) = at_b.get(&path).await;
        for line in read_back.as_array_mut().expect("an array") {
            assert!(line["createdAt"].as_i64().expect("a time") > 1_700_000_000_000);
            line["createdAt"] = json!(0);
        }
        let expected = json!([
            { "message": "one", "timestamp": 5, "createdAt": 0, "isSystem": false, "isStdErr": true, "serviceId": 21 },
            { "message": "two", "timestamp": 6, "createdAt": 0, "isSystem": true, "isStdErr": false },
        ]);
        assert_eq!(read_back, expected);
        assert_eq!(messages(&at_b, &device, "?count=1").await, ["two"]);
        assert_eq!(messages(&at_b, &device, "?count=0").await.len(), 0);
        let later = messages(&at_b, &device, "?start=2090-01-01T00:00:00Z").await;
        assert_eq!(later.len(), 0);

        // Two followers, of which the second leaves: the first still receives lines.
        let mut follows = LogReader::open(&at_b, &device, "&count=all").await;
        let mut goes = LogReader::open(&at_b, &device, "&count=1").await;
        assert_eq!(goes.message().await, "two");
        let mut at_a = LogReader::open(&shop.ann, &device, "").await;
        let (sender, request) = open(&device, None);
        let upload = tokio::spawn(async move { request.send().await });
        sender
            .unbounded_send(format!("{}\n", line("three")).into_bytes())
            .expect("a reader");
        assert_eq!(goes.message().await, "three");
        drop(goes);
        sender
            .unbounded_send(format!("{}\n", line("four")).into_bytes())
            .expect("a reader");
        for expected in ["one", "two", "three", "four"] {
            assert_eq!(follows.message().await, expected);
        }
        for expected in ["three", "four"] {
            assert_eq!(at_a.message().await, expected);
        }
        drop(sender);
        let answer = upload.await.expect("the upload").expect("an answer");
        assert_eq!(answer.status(), StatusCode::CREATED);
    })
    .await;
}

#[tokio::test]
async fn a_limited_number_of_lines_is_kept_per_device_and_none_after_its_deletion() {
    let settings = "[limits]\ngone_device_seconds = 0\n[nats]\nlog_lines = 5\nprefix = 'acme-1'";
    on_two_with(settings, async |two| {
        let shop = Shop::open(&two.a).await;
        let device = shop.device(1).await;
        let at_b = two.b.by(shop.ann.token.clone());
        until("the stream is there", async || {
            send(&device, "0").await == StatusCode::CREATED
        })
        .await;
        for number in 1..9 {
            assert_eq!(
                send(&device, &number.to_string()).await,
                StatusCode::CREATED
            );
        }
        assert_eq!(
            messages(&at_b, &device, "").await,
            ["4", "5", "6", "7", "8"]
        );
        // A request that stays open at B, of a device that is deleted at A.
        let there = Device {
            signed: two.b.by(device.signed.token.clone()),
            uuid: device.uuid.clone(),
            id: device.id,
        };
        let (sender, request) = open(&there, None);
        let upload = tokio::spawn(async move { request.send().await });
        sender
            .unbounded_send(format!("{}\n", line("9")).into_bytes())
            .expect("a reader");
        until("the line is kept", async || {
            messages(&at_b, &device, "?count=1").await == ["9"]
        })
        .await;
        let path = format!("/v7/device({})", device.id);
        let (status, _) = shop.ann.answer(shop.ann.ask(Method::DELETE, &path)).await;
        assert_eq!(status, StatusCode::OK);
        let mut ended = upload;
        let answer = loop {
            let sent = sender.unbounded_send(format!("{}\n", line("10")).into_bytes());
            tokio::select! {
                answer = &mut ended => break answer,
                () = tokio::time::sleep(std::time::Duration::from_millis(100)) => {
                    sent.expect("a reader");
                }
            }
        };
        let answer = answer.expect("the upload").expect("an answer");
        assert_eq!(answer.status(), StatusCode::UNAUTHORIZED);
        // Its lines are deleted too: the server reports that nothing is left on the subject.
        let subject = format!("acme-1.device.{}.log", device.id);
        let client = two.nats.client().await;
        let stream = async_nats::jetstream::new(client)
            .get_stream("acme-1-log")
            .await
            .expect("the stream");
        until("its lines are gone", async || {
            stream
                .get_last_raw_message_by_subject(&subject)
                .await
                .is_err()
        })
        .await;
    })
    .await;
}
