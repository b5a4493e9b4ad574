//! Slow connections, and too many of them.

use std::net::SocketAddr;
use std::time::Duration;

use axum::body::Bytes;
use data::testing::on_fresh;
use data::testing::sql;
use reqwest::{Method, StatusCode};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpSocket, TcpStream};
use tokio::time::timeout;

use crate::device_logs::{line, open};
use crate::harness::{Cloud, PATIENCE};
use crate::reach::until;
use crate::shop::{Shop, uuid};

fn address(cloud: &Cloud) -> SocketAddr {
    let address = cloud.url.strip_prefix("http://").expect("an address");
    address.parse().expect("an address")
}

/// Opens a connection and sends this text.
async fn saying(cloud: &Cloud, text: &str) -> TcpStream {
    saying_from("127.0.0.1", cloud, text).await
}

async fn saying_from(from: &str, cloud: &Cloud, text: &str) -> TcpStream {
    let socket = TcpSocket::new_v4().expect("a socket");
    let from = format!("{from}:0").parse().expect("an address");
    socket.bind(from).expect("an address of this machine");
    let mut stream = socket.connect(address(cloud)).await.expect("a connection");
    stream.write_all(text.as_bytes()).await.expect("to be sent");
    stream
}

/// Reads everything that is sent until the connection ends, in whatever way.
async fn read_to_end(mut stream: TcpStream) -> String {
    let mut text = Vec::new();
    let ended = timeout(PATIENCE, stream.read_to_end(&mut text)).await;
    let _ = ended.expect("the connection ends");
    String::from_utf8_lossy(&text).into_owned()
}

/// Reads the status of an answer, while the connection stays open.
async fn status(stream: &mut TcpStream) -> String {
    let mut begun = [0; 12];
    let answer = timeout(PATIENCE, stream.read_exact(&mut begun)).await;
    answer.expect("an answer").expect("an answer");
    String::from_utf8_lossy(&begun[9..]).into_owned()
}

const PING: &str = "GET /ping HTTP/1.1\r\nhost: x\r\n\r\n";

async fn is_served(cloud: &Cloud) {
    // On a separate connection: one that was used before may be ending.
    let answer = read_to_end(saying(cloud, &once("/health")).await).await;
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
}

#[tokio::test]
async fn a_head_a_body_and_an_idle_connection_have_their_time() {
    on_fresh(async |url| {
        let settings = "[limits]\nhead_seconds = 1\nidle_seconds = 2\nbody_seconds = 1";
        let cloud = Cloud::start_with(&url, settings).await;
        let silent = saying(&cloud, "").await;
        let half_a_head = saying(&cloud, "GET / HTTP/1.1\r\nhost: x\r\n").await;
        let length = "POST /login_ HTTP/1.1\r\nhost: x\r\ncontent-length: 50000\r\n";
        let half_a_body = saying(&cloud, &format!("{length}\r\n{{\"username\":")).await;
        let mut after_one_request = saying(&cloud, PING).await;
        assert_eq!(status(&mut after_one_request).await, "200");
        is_served(&cloud).await;
        assert_eq!(read_to_end(silent).await, "");
        assert_eq!(read_to_end(half_a_head).await, "");
        let answer = read_to_end(half_a_body).await;
        assert!(answer.starts_with("HTTP/1.1 408"), "{answer}");
        assert!(read_to_end(after_one_request).await.ends_with("OK"));
        is_served(&cloud).await;
    })
    .await;
}

/// Reads an answer without a body to its end, while the connection stays open.
async fn head(stream: &mut TcpStream) -> String {
    let mut text = Vec::new();
    while !text.ends_with(b"\r\n\r\n") {
        let byte = timeout(PATIENCE, stream.read_u8()).await;
        text.push(byte.expect("an answer in time").expect("an answer"));
    }
    String::from_utf8_lossy(&text).into_owned()
}

#[tokio::test]
async fn a_request_that_is_refused_before_its_body_came_leaves_the_connection_to_the_next() {
    on_fresh(async |url| {
        let cloud = Cloud::start_with(&url, "").await;
        let begun = "POST /v7/device_tag HTTP/1.1\r\nhost: x\r\nauthorization: Bearer no\r\n";
        for (length, body) in [
            ("content-length: 20", "x".repeat(20)),
            ("content-length: 8000000", "x".repeat(8_000_000)),
            (
                "transfer-encoding: chunked",
                "2\r\n{}\r\n0\r\n\r\n".to_owned(),
            ),
        ] {
            let mut stream = saying(&cloud, &format!("{begun}{length}\r\n\r\n")).await;
            let refusal = head(&mut stream).await;
            assert!(refusal.starts_with("HTTP/1.1 401"), "{length}: {refusal}");
            assert!(
                !refusal.contains("connection: close"),
                "{length}: {refusal}"
            );
            let next = format!("{body}{PING}");
            let sent = timeout(PATIENCE, stream.write_all(next.as_bytes())).await;
            sent.expect("to be sent in time").expect("to be sent");
            assert_eq!(status(&mut stream).await, "200", "{length}");
        }
        // A body that is not awaited ends the connection, and the answer announces it.
        for rest in [
            "content-length: 500000000",
            "content-length: 20\r\nexpect: 100-continue",
        ] {
            let mut stream = saying(&cloud, &format!("{begun}{rest}\r\n\r\n")).await;
            let refusal = head(&mut stream).await;
            assert!(refusal.starts_with("HTTP/1.1 401"), "{rest}: {refusal}");
            assert!(refusal.contains("connection: close"), "{rest}: {refusal}");
            drop(stream.shutdown().await);
            assert_eq!(read_to_end(stream).await, "", "{rest}");
        }
        is_served(&cloud).await;
    })
    .await;
}

#[tokio::test]
async fn a_body_that_nobody_reads_is_awaited_for_a_bounded_time() {
    on_fresh(async |url| {
        let cloud = Cloud::start_with(&url, "[limits]\nbody_seconds = 1").await;
        let begun = "POST /v7/device_tag HTTP/1.1\r\nhost: x\r\nauthorization: Bearer no\r\n";
        let mut silent = saying(&cloud, &format!("{begun}content-length: 20\r\n\r\n")).await;
        assert!(head(&mut silent).await.starts_with("HTTP/1.1 401"));
        assert_eq!(read_to_end(silent).await, "");
    })
    .await;
}

#[tokio::test]
async fn a_byte_now_and_then_keeps_no_connection() {
    on_fresh(async |url| {
        let settings = "[limits]\nhead_seconds = 1\nbody_seconds = 1";
        let cloud = Cloud::start_with(&url, settings).await;
        let length = "POST /login_ HTTP/1.1\r\nhost: x\r\ncontent-length: 50000\r\n";
        for begun in ["GET / HTTP/1.1\r\nx-", &format!("{length}\r\n{{")] {
            let mut stream = saying(&cloud, begun).await;
            until("the connection ends", async || {
                let mut byte = [0];
                let _ = stream.write_all(b"x").await;
                let read = timeout(Duration::from_millis(100), stream.read(&mut byte)).await;
                read.is_ok().then_some(())
            })
            .await;
        }
    })
    .await;
}

#[tokio::test]
async fn one_address_has_its_share_of_connections() {
    on_fresh(async |url| {
        let settings = "[limits]\nconnections_per_address = 3";
        let cloud = Cloud::start_with(&url, settings).await;
        let mut kept = Vec::new();
        for _ in 0..3 {
            kept.push(saying_from("127.0.0.2", &cloud, PING).await);
            assert_eq!(status(kept.last_mut().expect("one")).await, "200");
        }
        let refused = read_to_end(saying_from("127.0.0.2", &cloud, PING).await).await;
        assert!(
            refused.starts_with("HTTP/1.1 503") || refused.is_empty(),
            "{refused}"
        );
        is_served(&cloud).await;
        kept.pop();
        until("there is a place again", async || {
            let answer = read_to_end(saying_from("127.0.0.2", &cloud, &once("/ping")).await).await;
            answer.starts_with("HTTP/1.1 200").then_some(())
        })
        .await;
    })
    .await;
}

fn once(path: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n")
}

#[tokio::test]
async fn if_no_connection_is_free_the_address_with_the_most_loses_one() {
    on_fresh(async |url| {
        let settings = "[limits]\nconnections = 8\nconnections_per_address = 8";
        let cloud = Cloud::start_with(&url, settings).await;
        let mut many = Vec::new();
        for _ in 0..8 {
            let mut stream = saying_from("127.0.0.2", &cloud, PING).await;
            assert_eq!(status(&mut stream).await, "200");
            many.push(stream);
        }
        let mut other = saying_from("127.0.0.3", &cloud, PING).await;
        assert_eq!(status(&mut other).await, "200");
        assert!(
            read_to_end(many.pop().expect("the newest"))
                .await
                .ends_with("OK")
        );
        let mut first = many.swap_remove(0);
        let mut rest = [0; 1000];
        let _ = first.read(&mut rest).await.expect("the rest of an answer");
        first.write_all(PING.as_bytes()).await.expect("to be sent");
        assert_eq!(status(&mut first).await, "200", "the oldest stays");
    })
    .await;
}

#[tokio::test]
async fn connections_of_trusted_proxies_are_not_counted_by_address() {
    on_fresh(async |url| {
        let settings = "trusted_proxies = ['127.0.0.2/32']\n[limits]\nconnections_per_address = 1";
        let cloud = Cloud::start_with(&url, settings).await;
        let mut kept = Vec::new();
        for _ in 0..5 {
            let mut stream = saying_from("127.0.0.2", &cloud, PING).await;
            assert_eq!(status(&mut stream).await, "200");
            kept.push(stream);
        }
    })
    .await;
}

#[tokio::test]
async fn devices_that_are_gone_wait_for_their_refusal_in_bounded_numbers() {
    on_fresh(async |url| {
        let cloud = Cloud::start(&url).await;
        let path = format!("/device/v2/{}/logs", uuid(1));
        let request = format!(
            "POST {path} HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n[]"
        );
        let mut late = Vec::new();
        for _ in 0..40 {
            late.push(saying(&cloud, &request).await);
        }
        let mut refused = Vec::new();
        until("those that are too many are refused at once", async || {
            for stream in &late {
                let mut answer = [0; 500];
                if let Ok(length) = stream.try_read(&mut answer) {
                    refused.push(String::from_utf8_lossy(&answer[..length]).into_owned());
                }
            }
            (refused.len() >= 8).then_some(())
        })
        .await;
        assert_eq!(refused.len(), 8);
        for answer in refused {
            assert!(answer.starts_with("HTTP/1.1 429"), "{answer}");
            assert!(answer.contains("retry-after: 55"), "{answer}");
        }
    })
    .await;
}

#[tokio::test]
async fn a_device_has_few_streams_of_logs_and_the_oldest_ends() {
    on_fresh(async |url| {
        let cloud = Cloud::start(&url).await;
        let shop = Shop::open(&cloud).await;
        let device = shop.device(1).await;
        let mut streams = Vec::new();
        for _ in 0..3 {
            let (lines, request) = open(&device, None);
            let text = line("one").to_string() + "\n";
            lines.unbounded_send(text.into_bytes()).expect("a line");
            streams.push((lines, tokio::spawn(request.send())));
            // Each is open before the next one, or another would be the oldest.
            tokio::time::sleep(Duration::from_millis(300)).await;
        }
        let (_lines, oldest) = streams.remove(0);
        let answer = timeout(PATIENCE, oldest).await.expect("the oldest ends");
        let answer = answer.expect("an answer").expect("an answer");
        assert_eq!(answer.status(), StatusCode::CONFLICT);
        assert!(streams.iter().all(|(_, stream)| !stream.is_finished()));
    })
    .await;
}

/// Creates more bytes than sockets hold.
async fn large(shop: &Shop<'_>) -> String {
    let rows = sql(
        "INSERT INTO application_tag (created_at, modified_at, application, tag_key, value) \
         WITH RECURSIVE number(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM number WHERE n < 3000) \
         SELECT 0, 0, ?, 'tag ' || n, ? FROM number",
    );
    let made = shop
        .execute(rows.with(shop.fleet).with("x".repeat(8000)))
        .await;
    assert_eq!(made, 3000);
    format!(
        "/v7/application_tag?$filter=application%20eq%20{}",
        shop.fleet
    )
}

#[tokio::test]
async fn connections_that_do_not_read_stop_nobody_and_are_dropped() {
    on_fresh(async |url| {
        let cloud = Cloud::start_with(&url, "[limits]\nunread_seconds = 15").await;
        let shop = Shop::open(&cloud).await;
        let path = large(&shop).await;
        let request = format!(
            "GET {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\nauthorization: Bearer {}\r\n\r\n",
            shop.ann.token
        );
        let mut unread = Vec::new();
        for _ in 0..40 {
            unread.push(saying(&cloud, &request).await);
        }
        let mut answers = Vec::new();
        for stream in &mut unread {
            answers.push(status(stream).await);
        }
        let begun = answers.iter().filter(|status| *status == "200").count();
        assert_eq!(begun, 2, "{answers:?}");
        assert_eq!(answers.iter().filter(|status| *status == "429").count(), 38);
        // Everybody else is served in the meantime.
        let device = shop.device(1).await;
        for _ in 0..20 {
            is_served(&cloud).await;
            let answer = cloud
                .ask(Method::GET, "/v7/device_type?$top=1")
                .send()
                .await;
            assert_eq!(answer.expect("an answer").status(), StatusCode::OK);
            shop.fields(&device, "id").await;
        }
        // What they held is released without any action of theirs.
        let all = until("there is a stream again", async || {
            let answer = shop.ann.ask(Method::GET, &path).send().await;
            let answer = answer.expect("an answer");
            match answer.status() {
                StatusCode::OK => Some(answer.bytes().await.expect("the whole answer")),
                status => {
                    assert_eq!(status, StatusCode::TOO_MANY_REQUESTS);
                    None
                }
            }
        })
        .await;
        let all: Bytes = all;
        assert!(all.len() > 24_000_000 && all.ends_with(b"]}"));
        let mut ends = Vec::new();
        for (stream, answer) in unread.into_iter().zip(&answers) {
            if answer == "200" {
                ends.push(read_to_end(stream).await.ends_with("0\r\n\r\n"));
            }
        }
        assert!(ends.contains(&false), "one was cut off at least");
    })
    .await;
}

#[tokio::test]
async fn a_request_that_takes_long_is_not_idle_and_a_slow_reader_that_reads_goes_on() {
    on_fresh(async |url| {
        let settings =
            "[limits]\nhead_seconds = 1\nidle_seconds = 1\nunread_seconds = 8\nbody_seconds = 1";
        let cloud = Cloud::start_with(&url, settings).await;
        let shop = Shop::open(&cloud).await;
        let device = shop.device(1).await;
        // A log stream that is silent for longer than all limits, and a follower.
        let (lines, request) = open(&device, None);
        let uploading = tokio::spawn(request.send());
        let path = format!("/device/v2/{}/logs?stream=1", device.uuid);
        let following = shop.ann.ask(Method::GET, &path).send().await;
        let mut following = following.expect("an answer");
        let path = large(&shop).await;
        let mut slow = shop
            .ann
            .ask(Method::GET, &path)
            .send()
            .await
            .expect("an answer");
        let mut read = 0;
        let begun = std::time::Instant::now();
        while let Some(some) = slow.chunk().await.expect("it goes on") {
            read += some.len();
            // Longer than it may go without reading; on a busy machine, much longer.
            if begun.elapsed() < Duration::from_secs(10) {
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        }
        assert!(read > 24_000_000, "{read}");
        let text = line("still here").to_string() + "\n";
        lines.unbounded_send(text.into_bytes()).expect("a line");
        let mut received = String::new();
        while !received.contains("still here") {
            let more = timeout(PATIENCE, following.chunk()).await.expect("in time");
            let more = more.expect("it goes on").expect("more");
            received.push_str(&String::from_utf8_lossy(&more));
        }
        drop(lines);
        let answer = uploading.await.expect("an answer").expect("an answer");
        assert_eq!(answer.status(), StatusCode::CREATED);
    })
    .await;
}

/// Characters that change the direction of a text, end a line or move a terminal's cursor, in the path of a request.
const FORGED: &str = "/v7/\u{202e}\u{85}\u{2028}\u{9b}31mINFO";

#[tokio::test]
async fn the_path_of_a_request_forges_nothing_in_the_log() {
    on_fresh(async |url| {
        let cloud = Cloud::start(&url).await;
        let answer = read_to_end(saying(&cloud, &once(FORGED)).await).await;
        assert!(answer.starts_with("HTTP/1.1 4"), "{answer}");
        is_served(&cloud).await;
        let written = until("the line of the request", async || {
            let log = cloud.log();
            let mut lines = log.lines().map(str::to_owned);
            lines.find(|line| line.contains("INFO\""))
        })
        .await;
        assert!(
            written.contains(r"\u{202e}\u{85}\u{2028}\u{9b}31m"),
            "{written}"
        );
        let raw = |sign: char| sign.is_control() || !sign.is_ascii();
        assert!(!written.contains(raw), "{written:?}");
    })
    .await;
}
