//! Log lines: accepted, stored, read back and followed (docs/spec/cloud.md#device-logs).

use std::io::Write as _;

use axum::body::Bytes;
use data::testing::sql;
use flate2::Compression;
use flate2::write::GzEncoder;
use futures::StreamExt as _;
use futures::channel::mpsc;
use reqwest::{Body, Method, StatusCode};
use serde_json::{Value, json};
use tokio::time::timeout;

use crate::harness::{ApiCaller, Cloud, PATIENCE, on_both, read};
use crate::shop::{Device, Shop, until, uuid};

pub(crate) fn line(message: &str) -> Value {
    json!({ "timestamp": 1_700_000_000_000_i64, "message": message })
}

pub(crate) async fn messages(by: &ApiCaller<'_>, device: &Device<'_>, query: &str) -> Vec<String> {
    let (status, lines) = by
        .get(&format!("/device/v2/{}/logs{query}", device.uuid))
        .await;
    assert_eq!(status, StatusCode::OK, "{lines}");
    let lines = lines.as_array().expect("an array").iter();
    lines
        .map(|line| line["message"].as_str().expect("text").to_owned())
        .collect()
}

/// Lines of an endless answer, as they arrive.
pub(crate) struct LogReader {
    body: std::pin::Pin<Box<dyn futures::Stream<Item = reqwest::Result<Bytes>> + Send>>,
    begun: String,
}

impl LogReader {
    pub(crate) async fn open(by: &ApiCaller<'_>, device: &Device<'_>, query: &str) -> Self {
        let path = format!("/device/v2/{}/logs?stream=1{query}", device.uuid);
        let answer = by.ask(Method::GET, &path).send().await.expect("an answer");
        assert_eq!(answer.status(), StatusCode::OK);
        assert_eq!(answer.headers()["content-type"], "application/x-ndjson");
        assert_eq!(answer.headers()["cache-control"], "no-cache");
        LogReader {
            body: Box::pin(answer.bytes_stream()),
            begun: String::new(),
        }
    }

    /// Returns the next line that is not blank.
    async fn next(&mut self) -> Value {
        loop {
            while let Some((line, rest)) = self.begun.split_once('\n') {
                let (line, rest) = (line.to_owned(), rest.to_owned());
                self.begun = rest;
                if !line.is_empty() {
                    return serde_json::from_str(&line).expect("a line of JSON");
                }
            }
            let more = timeout(PATIENCE, self.body.next())
                .await
                .expect("more in time");
            let more = more.expect("more").expect("bytes");
            self.begun
                .push_str(std::str::from_utf8(&more).expect("text"));
        }
    }

    /// Returns when the cloud ends the answer.
    pub(crate) async fn end(mut self) {
        let end = async { while let Some(Ok(_)) = self.body.next().await {} };
        timeout(PATIENCE, end).await.expect("the end in time");
    }

    pub(crate) async fn message(&mut self) -> String {
        self.next().await["message"]
            .as_str()
            .expect("text")
            .to_owned()
    }
}

/// Opens a request that stays open.
pub(crate) fn open(
    device: &Device<'_>,
    encoding: Option<&str>,
) -> (mpsc::UnboundedSender<Vec<u8>>, reqwest::RequestBuilder) {
    let (sender, receiver) = mpsc::unbounded::<Vec<u8>>();
    let stream = receiver.map(Ok::<_, std::io::Error>);
    let path = format!("/device/v2/{}/log-stream", device.uuid);
    let mut request = device
        .signed
        .ask(Method::POST, &path)
        .header("content-type", "application/x-ndjson")
        .body(Body::wrap_stream(stream));
    if let Some(encoding) = encoding {
        request = request.header("content-encoding", encoding);
    }
    (sender, request)
}

#[tokio::test]
async fn a_batch_of_lines_is_kept_and_read_back() {
    on_both(async |cloud| {
        let shop = Shop::open(&cloud).await;
        let device = shop.device(1).await;
        let path = format!("/device/v2/{}/logs", device.uuid);
        let lines = json!([
            { "timestamp": 5, "message": "one", "isStdErr": true, "serviceId": 21 },
            { "timestamp": 6, "message": "two", "isSystem": true },
            { "timestamp": 7, "message": "behind", "uuid": uuid(9) },
        ]);
        let answer = device.signed.send(Method::POST, &path, lines).await;
        assert_eq!(answer, (StatusCode::CREATED, Value::Null));
        let (_, mut read_back) = shop.ann.get(&path).await;
        for line in read_back.as_array_mut().expect("an array") {
            assert!(line["createdAt"].as_i64().expect("a time") > 1_700_000_000_000);
            line["createdAt"] = json!(0);
        }
        let expected = json!([
            { "message": "one", "timestamp": 5, "createdAt": 0, "isSystem": false, "isStdErr": true, "serviceId": 21 },
            { "message": "two", "timestamp": 6, "createdAt": 0, "isSystem": true, "isStdErr": false },
        ]);
        assert_eq!(read_back, expected);
        for (body, status) in [
            (json!(vec![line("x"); 11]), 400),
            (json!({}), 400),
            (json!([{ "m": "old", "t": 5 }]), 400),
            (json!([line("good"), "bad"]), 400),
            (json!([]), 201),
            (json!(vec![line("x"); 10]), 201),
        ] {
            let (got, answer) = device.signed.send(Method::POST, &path, body.clone()).await;
            assert_eq!(got.as_u16(), status, "{body}: {answer}");
        }
        assert_eq!(messages(&shop.ann, &device, "?count=all").await.len(), 12);
        assert_eq!(messages(&shop.ann, &device, "?count=3").await, ["x", "x", "x"]);
        assert_eq!(messages(&shop.ann, &device, "?count=0").await.len(), 0);
        assert_eq!(messages(&shop.ann, &device, "?start=2030-01-01T00:00:00Z").await.len(), 0);
        assert_eq!(messages(&shop.ann, &device, "?start=1700000000000").await.len(), 12);
        for query in ["?count=x", "?count=-1", "?start=yesterday"] {
            assert_eq!(shop.ann.get(&format!("{path}{query}")).await.0, 400, "{query}");
        }
    })
    .await;
}

#[tokio::test]
async fn a_device_sends_lines_and_people_read_them() {
    data::testing::on_fresh(async |url| {
        let cloud = Cloud::start_with(&url, "[limits]\ngone_device_seconds = 0").await;
        let shop = Shop::open(&cloud).await;
        let [one, two] = [shop.device(1).await, shop.device(2).await];
        let path = format!("/device/v2/{}/logs", one.uuid);
        let lines = json!([line("x")]);
        for by in [&shop.ann, &two.signed, &cloud.by(shop.key.clone())] {
            assert_eq!(by.send(Method::POST, &path, lines.clone()).await.0, 401);
        }
        for (by, status) in [
            (&one.signed, 401),
            (&two.signed, 401),
            (&cloud.by(shop.key.clone()), 401),
            (&shop.ann, 200),
        ] {
            assert_eq!(by.get(&path).await.0.as_u16(), status);
            let stream = by
                .ask(Method::GET, &format!("{path}?stream=1"))
                .send()
                .await
                .expect("an answer");
            assert_eq!(stream.status().as_u16(), status);
        }
        let nobody = cloud
            .ask(Method::GET, &path)
            .send()
            .await
            .expect("an answer");
        assert_eq!(nobody.status(), StatusCode::UNAUTHORIZED);
        let (status, text) = shop.ann.get(&format!("/device/v2/{}/logs", uuid(9))).await;
        assert_eq!(
            (status, text),
            (
                StatusCode::NOT_FOUND,
                json!(format!("No device with uuid {}", uuid(9)))
            )
        );

        let stream = format!("/device/v2/{}/log-stream", one.uuid);
        let send = |kind: &'static str, encoding: &'static str, body: &'static str| {
            let request = one
                .signed
                .ask(Method::POST, &stream)
                .header("content-type", kind);
            one.signed
                .answer(request.header("content-encoding", encoding).body(body))
        };
        for (kind, encoding, body, status) in [
            ("application/json", "identity", "{}", 415),
            ("application/x-ndjson; charset=utf-8", "identity", "{}", 415),
            ("application/x-ndjson", "br", "{}", 415),
            ("application/x-ndjson", "gzip", "not packed", 400),
            ("application/x-ndjson", "identity", "{\"message\":", 400),
            (
                "application/x-ndjson",
                "identity",
                "{\"shape\":\"odd\"}\n[]\n",
                201,
            ),
        ] {
            let (got, answer) = send(kind, encoding, body).await;
            assert_eq!(got.as_u16(), status, "{kind} {encoding} {body}: {answer}");
        }
        // A deleted device.
        shop.ann
            .answer(
                shop.ann
                    .ask(Method::DELETE, &format!("/v7/device({})", one.id)),
            )
            .await;
        assert_eq!(one.signed.send(Method::POST, &path, lines).await.0, 401);
        assert_eq!(send("application/x-ndjson", "identity", "").await.0, 401);
        assert_eq!(shop.ann.get(&path).await.0, 404);
    })
    .await;
}

#[tokio::test]
async fn too_many_batches_are_refused_until_later() {
    on_both(async |cloud| {
        let shop = Shop::open(&cloud).await;
        let [one, two] = [shop.device(1).await, shop.device(2).await];
        let path = format!("/device/v2/{}/logs", one.uuid);
        let mut refused = None;
        for _ in 0..60 {
            let answer = one
                .signed
                .ask(Method::POST, &path)
                .json(&json!([line("x")]));
            let answer = answer.send().await.expect("an answer");
            if answer.status() == StatusCode::TOO_MANY_REQUESTS {
                refused = Some(answer);
                break;
            }
            assert_eq!(answer.status(), StatusCode::CREATED);
        }
        let refused = refused.expect("one too many");
        let wait = refused.headers()["retry-after"].to_str().expect("text");
        assert!(
            (1..=10).contains(&wait.parse::<u32>().expect("seconds")),
            "{wait}"
        );
        assert!(messages(&shop.ann, &one, "").await.len() >= 15);
        let other = format!("/device/v2/{}/logs", two.uuid);
        let (status, _) = two
            .signed
            .send(Method::POST, &other, json!([line("x")]))
            .await;
        assert_eq!(status, StatusCode::CREATED, "another device");
    })
    .await;
}

#[tokio::test]
async fn a_stream_is_followed_live_after_what_was_there_without_a_gap() {
    on_both(async |cloud| {
        let shop = Shop::open(&cloud).await;
        let device = shop.device(1).await;
        let (sender, request) = open(&device, Some("gzip"));
        let uploading = tokio::spawn(request.send());
        let mut packed = GzEncoder::new(Vec::new(), Compression::default());
        let mut say = |message: &str| {
            writeln!(packed, "{}", line(message)).expect("a line");
            packed.flush().expect("a flush");
            sender
                .unbounded_send(std::mem::take(packed.get_mut()))
                .expect("somebody reads");
        };
        say("0");
        until("the first line", || async {
            messages(&shop.ann, &device, "").await == ["0"]
        })
        .await;
        say("1");
        let mut with_history = LogReader::open(&shop.ann, &device, "&count=all").await;
        let mut from_now = LogReader::open(&shop.ann, &device, "").await;
        assert_eq!(with_history.message().await, "0");
        assert_eq!(with_history.message().await, "1");
        for number in 2..300 {
            say(&number.to_string());
        }
        for number in 2..300 {
            assert_eq!(with_history.message().await, number.to_string());
        }
        // The other follower may have received the line before, but no line twice.
        let mut number = from_now.message().await.parse::<u32>().expect("a number");
        assert!(number <= 2, "{number}");
        while number < 299 {
            number += 1;
            assert_eq!(from_now.message().await, number.to_string());
        }
        assert!(!uploading.is_finished(), "no answer while the device sends");
        sender
            .unbounded_send(packed.finish().expect("an end"))
            .expect("somebody reads");
        drop(sender);
        let answer = uploading.await.expect("a task").expect("an answer");
        assert_eq!(answer.status(), StatusCode::CREATED);
        assert_eq!(messages(&shop.ann, &device, "").await.len(), 300);
    })
    .await;
}

#[tokio::test]
async fn excess_lines_of_a_device_are_reported_as_one_line() {
    data::testing::on_fresh(async |url| {
        let cloud = Cloud::start_with(&url, "[limits]\nlog_lines_per_second = 1").await;
        let shop = Shop::open(&cloud).await;
        let device = shop.device(1).await;
        let (sender, request) = open(&device, None);
        let mut text = String::new();
        for number in 0..500 {
            text.push_str(&format!("{}\n", line(&number.to_string())));
        }
        sender
            .unbounded_send(text.into_bytes())
            .expect("somebody reads");
        drop(sender);
        let answer = request.send().await.expect("an answer");
        assert_eq!(answer.status(), StatusCode::CREATED);
        let (_, lines) = shop
            .ann
            .get(&format!("/device/v2/{}/logs", device.uuid))
            .await;
        let lines = lines.as_array().expect("an array");
        let suppressed: u32 = lines
            .iter()
            .filter(|line| line["isSystem"] == json!(true))
            .map(|line| {
                let text = line["message"].as_str().expect("text");
                let number = text
                    .strip_prefix("Warning: Suppressed ")
                    .expect("the words");
                let number = number
                    .strip_suffix(" message(s) due to rate limiting")
                    .expect("the words");
                number.parse::<u32>().expect("a number")
            })
            .sum();
        let kept = lines
            .iter()
            .filter(|line| line["isSystem"] == json!(false))
            .count();
        assert_eq!(u32::try_from(kept).expect("a number") + suppressed, 500);
        assert!(suppressed > 400, "{suppressed}");
    })
    .await;
}

#[tokio::test]
async fn the_latest_thousand_lines_of_a_month_are_kept() {
    data::testing::on_fresh(async |url| {
        let cloud = Cloud::start_with(&url, "[limits]\nlog_lines_per_second = 10000").await;
        let shop = Shop::open(&cloud).await;
        let device = shop.device(1).await;
        let mut text = String::new();
        for number in 0..1700 {
            text.push_str(&format!("{}\n", line(&number.to_string())));
        }
        let path = format!("/device/v2/{}/log-stream", device.uuid);
        let request = device
            .signed
            .ask(Method::POST, &path)
            .header("content-type", "application/x-ndjson");
        let (status, body) = read(request.body(text).send().await.expect("an answer")).await;
        assert_eq!(status, StatusCode::CREATED, "{body}");
        let kept = messages(&shop.ann, &device, "?count=all").await;
        let expected: Vec<String> = (700..1700).map(|number| number.to_string()).collect();
        assert_eq!(kept, expected);
        // After that, there are fewer than 1,250 rows.
        until("the old ones gone", || async {
            let count =
                sql("UPDATE device_log SET message = message WHERE device = ?").with(device.id);
            (1000..1250).contains(&shop.execute(count).await)
        })
        .await;
        // Lines older than a month are no longer returned.
        let old =
            sql("UPDATE device_log SET created_at = created_at - 2595600000 WHERE device = ?")
                .with(device.id);
        shop.execute(old).await;
        assert_eq!(
            messages(&shop.ann, &device, "?count=all&start=0")
                .await
                .len(),
            0
        );
    })
    .await;
}

#[tokio::test]
async fn lines_that_a_device_sends_again_are_kept_once() {
    on_both(async |cloud| {
        let shop = Shop::open(&cloud).await;
        let device = shop.device(1).await;
        let send = async |lines: &[(i64, &str)]| {
            let (sender, request) = open(&device, None);
            let answer = tokio::spawn(request.send());
            for (timestamp, message) in lines {
                let line = json!({ "timestamp": timestamp, "message": message, "serviceId": 21 });
                sender
                    .unbounded_send(format!("{line}\n").into_bytes())
                    .expect("a reader");
            }
            drop(sender);
            let answer = answer.await.expect("a task").expect("an answer");
            assert_eq!(answer.status(), StatusCode::CREATED);
        };
        send(&[(1, "a"), (2, "b"), (2, "b")]).await;
        // As after a lost connection: the last lines again, followed by new ones.
        send(&[(2, "b"), (2, "b"), (2, "b"), (3, "c")]).await;
        send(&[(4, "c"), (4, "c")]).await;
        let all = messages(&shop.ann, &device, "").await;
        assert_eq!(all, ["a", "b", "b", "b", "c", "c", "c"]);
    })
    .await;
}
