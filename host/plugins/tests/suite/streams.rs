//! Bodies in pieces.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{Request, StatusCode};
use http_body::Frame;
use http_body_util::{BodyExt as _, Full};
use tokio::sync::mpsc;

use crate::fixture::{Fixture, failure, setup, text};

/// A body of unknown length, sent piece by piece.
struct ChannelBody(mpsc::Receiver<Result<Bytes, String>>);

impl http_body::Body for ChannelBody {
    type Data = Bytes;
    type Error = String;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, String>>> {
        self.0
            .poll_recv(context)
            .map(|piece| piece.map(|piece| piece.map(Frame::data)))
    }
}

fn send(path: &str) -> (mpsc::Sender<Result<Bytes, String>>, Request<ChannelBody>) {
    let (sender, receiver) = mpsc::channel(1);
    (
        sender,
        Request::post(path).body(ChannelBody(receiver)).unwrap(),
    )
}

async fn device() -> Fixture {
    setup()
        .guest("a", "[limits]\nbody_kib = 1024\nwall_ms = 2000\n")
        .start()
        .await
}

fn noise(length: usize) -> Bytes {
    (0..length)
        .map(|at| u8::try_from(at * 31 % 251).unwrap())
        .collect::<Vec<_>>()
        .into()
}

async fn bytes(response: http::Response<plugins::Body>) -> Bytes {
    response.into_body().collect().await.unwrap().to_bytes()
}

#[tokio::test]
async fn small_bodies_come_whole_and_large_ones_as_streams() {
    let device = device().await;
    for (length, expected) in [
        (0, "empty 0"),
        (1, "bytes 1"),
        (64 << 10, "bytes 65536"),
        (1 << 20, "stream 1048576"),
    ] {
        assert_eq!(
            device.post("/v3/a/count", noise(length)).await,
            (StatusCode::OK, expected.to_owned())
        );
    }
    let (sender, request) = send("/v3/a/count");
    let sending = tokio::spawn(async move {
        for _ in 0..20 {
            sender.send(Ok(noise(10_000))).await.unwrap();
        }
    });
    assert_eq!(
        text(device.call(request).await).await,
        (StatusCode::OK, "stream 200000".to_owned())
    );
    sending.await.unwrap();
}

#[tokio::test]
async fn a_stream_that_is_returned_passes_unchanged() {
    let device = device().await;
    let body = noise(1 << 20);
    let request = Request::post("/v3/a/echo")
        .body(Full::new(body.clone()))
        .unwrap();
    assert_eq!(bytes(device.call(request).await).await, body);
    // The part that was read to find out that it is large is not lost.
    let (sender, request) = send("/v3/a/echo");
    let pieces: Vec<Bytes> = body.chunks(9_999).map(Bytes::copy_from_slice).collect();
    let sending = tokio::spawn(async move {
        for piece in pieces {
            sender.send(Ok(piece)).await.unwrap();
        }
    });
    assert_eq!(bytes(device.call(request).await).await, body);
    sending.await.unwrap();
}

#[tokio::test]
async fn a_stream_goes_through_the_guest_piece_by_piece() {
    let device = device().await;
    let body = noise(1 << 20);
    let request = Request::post("/v3/a/shout")
        .body(Full::new(body.clone()))
        .unwrap();
    assert_eq!(
        bytes(device.call(request).await).await,
        body.to_ascii_uppercase()
    );
    let (status, pieces) = device.get("/v3/a/pieces?count=100").await;
    assert_eq!(status, StatusCode::OK);
    let expected: String = (0..100).map(|number| format!("piece {number}\n")).collect();
    assert_eq!(pieces, expected);
    assert_eq!(
        device.get("/v3/a/pieces?count=0").await,
        (StatusCode::OK, String::new())
    );
    assert_eq!(device.report("a").failures, 0);
}

#[tokio::test]
async fn a_body_that_grows_over_the_limit_ends_the_call() {
    let device = device().await;
    let flood = |sender: mpsc::Sender<Result<Bytes, String>>| {
        tokio::spawn(async move { while sender.send(Ok(noise(50_000))).await.is_ok() {} })
    };
    let expected =
        failure("the request's body is larger than the 1024 KiB that plugin `a` accepts");
    let (sender, request) = send("/v3/a/count");
    let sending = flood(sender);
    assert_eq!(
        text(device.call(request).await).await,
        (StatusCode::PAYLOAD_TOO_LARGE, expected)
    );
    sending.await.unwrap();
    // If the answer has already begun, it ends early.
    for path in ["/v3/a/shout", "/v3/a/echo"] {
        let (sender, request) = send(path);
        let sending = flood(sender);
        let (status, body) = text(device.call(request).await).await;
        assert_eq!(status, StatusCode::OK);
        assert!(body.ends_with("(broken)"), "{path}");
        sending.await.unwrap();
    }
    assert_eq!(device.report("a").failures, 0);
}

#[tokio::test]
async fn a_request_that_breaks_off_is_no_short_request() {
    let device = device().await;
    for first in [10, 100_000] {
        let (sender, request) = send("/v3/a/count");
        let sending = tokio::spawn(async move {
            let _ = sender.send(Ok(noise(first))).await;
            let _ = sender.send(Err("reset".to_owned())).await;
        });
        let (status, body) = text(device.call(request).await).await;
        assert_eq!(
            (status, body),
            (
                StatusCode::BAD_REQUEST,
                failure(
                    "the request's body is incomplete: the connection ended before all of it arrived"
                )
            )
        );
        sending.await.unwrap();
    }
}

#[tokio::test]
async fn a_guest_that_fails_in_its_stream_breaks_it_off() {
    let device = device().await;
    let (status, body) = device.get("/v3/a/trap-in-stream").await;
    assert_eq!((status, body.as_str()), (StatusCode::OK, "begun\n(broken)"));
    let (_, body) = device.get("/v3/a/spin-in-stream").await;
    assert!(body.ends_with("(broken)"), "{body}");
    let report = device.report("a");
    assert_eq!(report.failures, 2);
    assert_eq!(
        report.last_error.unwrap(),
        "plugin `a` used more than its 1000 ms of CPU time (the limit `cpu_ms`, which may be 60000 at most)"
    );
}

/// The stream may last longer than the wall limit and use more CPU time in total than the limit for a piece.
#[tokio::test]
async fn a_stream_may_last() {
    let device = setup()
        .guest("a", "[limits]\nwall_ms = 1000\ncpu_ms = 50\n")
        .start()
        .await;
    let request = Request::get("/v3/a/endless?ms=50")
        .body(Full::<Bytes>::default())
        .unwrap();
    let mut body = device.call(request).await.into_body();
    let begun = std::time::Instant::now();
    while begun.elapsed().as_millis() < 1600 {
        assert!(body.frame().await.unwrap().is_ok());
    }
}

#[tokio::test]
async fn a_client_that_leaves_frees_the_instance() {
    let device = setup()
        .guest("a", "[limits]\nconcurrency = 1\n")
        .slots(2)
        .start()
        .await;
    for _ in 0..20 {
        let request = Request::get("/v3/a/endless")
            .body(Full::<Bytes>::default())
            .unwrap();
        let mut body = device.call(request).await.into_body();
        assert_eq!(
            body.frame()
                .await
                .unwrap()
                .unwrap()
                .into_data()
                .unwrap()
                .len(),
            4096
        );
        drop(body);
    }
    assert_eq!(device.get("/v3/a/hello").await.0, StatusCode::OK);
}

/// A client that reads nothing makes the guest wait.
#[tokio::test]
async fn a_slow_client_holds_the_guest_back() {
    let device = setup().guest("a", "[limits]\ncpu_ms = 50\n").start().await;
    let request = Request::get("/v3/a/endless")
        .body(Full::<Bytes>::default())
        .unwrap();
    let mut body = device.call(request).await.into_body();
    tokio::time::sleep(std::time::Duration::from_millis(200)).await;
    for _ in 0..1_000 {
        assert!(body.frame().await.unwrap().is_ok());
    }
}

/// Returns the output of the program in place of the journal command, after the first `skipped` bytes.
fn journal(skipped: usize, length: usize) -> String {
    let line = "a line of the journal\n";
    line.chars().cycle().skip(skipped).take(length).collect()
}

#[tokio::test]
async fn the_journal_passes_outside_the_plugin_whole_and_needs_no_instance() {
    let device = device().await;
    let mut bodies = Vec::new();
    // As many as one plugin may have, and as many as it has instances.
    for _ in 0..16 {
        let request = Request::get("/v3/a/journal").body(Full::new(Bytes::new()));
        let response = device.call(request.unwrap()).await;
        assert_eq!(response.status(), StatusCode::OK);
        bodies.push(response.into_body());
    }
    assert_eq!(device.get("/v3/a/hello").await.0, StatusCode::OK);
    for body in &mut bodies {
        let mut read = Vec::new();
        while read.len() < 1_000_000 {
            let frame = body.frame().await.unwrap().unwrap();
            read.extend(frame.into_data().unwrap());
        }
        // The guest itself had read eight bytes.
        assert!(read == journal(8, read.len()).as_bytes());
    }
    drop(bodies);
    let (status, text) = device.get("/v3/a/journal-start").await;
    assert_eq!(status, StatusCode::OK);
    assert!(text == journal(0, 100_000));
}
