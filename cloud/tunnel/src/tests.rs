//! Tests of both ends, over a connection in memory.

#![expect(
    clippy::unwrap_used,
    reason = "also the helpers of a test fail with what they did not find"
)]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use futures::{SinkExt, StreamExt, stream};
use http::{Method, Request, Response, StatusCode};
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::{Frame, Incoming};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};
use tokio::task::JoinHandle;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::Role;

use crate::{
    CloseMessage, CloseReason, End, Pings, RequestSender, TunnelCloser, connect, over, serve,
};

type Body = BoxBody<Bytes, std::io::Error>;

const PATIENCE: Duration = Duration::from_secs(20);
const PIECE: usize = 16 << 10;

fn text(text: String) -> Body {
    Full::new(Bytes::from(text))
        .map_err(|never| match never {})
        .boxed()
}

/// The device of these tests: an echo, and an endless stream that counts its pieces and records when it is dropped.
#[derive(Clone, Default)]
struct Device {
    pieces: Arc<AtomicUsize>,
    dropped: Arc<AtomicBool>,
}

struct DropRecorder(Arc<AtomicBool>);

impl Drop for DropRecorder {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

impl Device {
    async fn answer(self, request: Request<Incoming>) -> Response<Body> {
        match request.uri().path() {
            "/endless" => {
                let gone = DropRecorder(self.dropped);
                let pieces = self.pieces;
                let endless = stream::repeat_with(move || {
                    let _held = &gone;
                    pieces.fetch_add(1, Ordering::SeqCst);
                    Ok(Frame::data(Bytes::from(vec![b'x'; PIECE])))
                });
                Response::new(BodyExt::boxed(StreamBody::new(endless)))
            }
            _ => {
                let (head, body) = request.into_parts();
                let body = body.collect().await.unwrap().to_bytes();
                let summary = format!("{} {} {}", head.method, head.uri.path(), body.len());
                Response::new(text(summary))
            }
        }
    }
}

async fn tunnel(
    device: Device,
    stopping: impl Future<Output = ()> + Send + 'static,
) -> (
    RequestSender<Body>,
    JoinHandle<hyper::Result<()>>,
    JoinHandle<()>,
) {
    let (one, other) = tokio::io::duplex(8 << 10);
    let served = tokio::spawn(async move {
        let (pipe, _parting) = over(one, End::Device).await;
        serve(
            pipe,
            move |request| device.clone().answer(request),
            stopping,
        )
        .await
    });
    let (pipe, closer) = over(other, End::Cloud).await;
    let (ask, mut connection) = connect(pipe, Pings::default()).await.unwrap();
    let asking = tokio::spawn(async move {
        let _parting = closer;
        let _ = connection.ended().await;
    });
    (ask, served, asking)
}

fn request(method: Method, path: &str, body: String) -> Request<Body> {
    Request::builder()
        .method(method)
        .uri(format!("http://device{path}"))
        .body(text(body))
        .unwrap()
}

async fn answer_text(ask: &mut RequestSender<Body>, request: Request<Body>) -> String {
    let answer = tokio::time::timeout(PATIENCE, ask.send_request(request));
    let answer = answer.await.unwrap().unwrap();
    assert_eq!(answer.status(), StatusCode::OK);
    let body = answer.into_body().collect().await.unwrap().to_bytes();
    String::from_utf8(body.to_vec()).unwrap()
}

/// Waits until `found` returns the same value for as long as any other task could have changed it.
async fn settled(found: impl Fn() -> usize) -> usize {
    let mut last = found();
    let mut same = 0;
    while same < 1000 {
        tokio::task::yield_now().await;
        let now = found();
        same = if now == last { same + 1 } else { 0 };
        last = now;
    }
    last
}

#[tokio::test]
async fn the_cloud_asks_and_the_device_answers_several_at_a_time() {
    let (ask, _served, _asking) = tunnel(Device::default(), std::future::pending()).await;
    let many = (0..100).map(|number| {
        let mut ask = ask.clone();
        async move {
            ask.ready().await.unwrap();
            let body = "b".repeat(number * 1000);
            let found =
                answer_text(&mut ask, request(Method::POST, &format!("/{number}"), body)).await;
            assert_eq!(found, format!("POST /{number} {}", number * 1000));
        }
    });
    futures::future::join_all(many).await;
}

#[tokio::test]
async fn a_slow_reader_holds_back_its_stream_and_no_other() {
    let device = Device::default();
    let (mut ask, _served, _asking) = tunnel(device.clone(), std::future::pending()).await;
    let endless = request(Method::GET, "/endless", String::new());
    let answer = ask.send_request(endless).await.unwrap();
    let mut body = answer.into_body();
    let before = settled(|| device.pieces.load(Ordering::SeqCst)).await;
    // Data in transit and in the send buffer, but not everything that could have been produced by now.
    assert!((1..=16).contains(&before), "{before} pieces of {PIECE}");
    let found = answer_text(&mut ask, request(Method::GET, "/other", String::new())).await;
    assert_eq!(found, "GET /other 0");
    let mut read = 0;
    while read < 40 * PIECE {
        let frame = body.frame().await.unwrap().unwrap();
        read += frame.into_data().unwrap().len();
    }
    let after = settled(|| device.pieces.load(Ordering::SeqCst)).await;
    assert!((40..=60).contains(&after), "{after} pieces of {PIECE}");
    assert!(!device.dropped.load(Ordering::SeqCst));

    drop(body);
    let gone = async {
        while !device.dropped.load(Ordering::SeqCst) {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(PATIENCE, gone).await.unwrap();
}

#[tokio::test]
async fn a_device_that_stops_ends_what_is_under_way_first() {
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let stopping = async move {
        let _ = stopped.await;
    };
    let (mut ask, served, asking) = tunnel(Device::default(), stopping).await;
    let (sender, receiver) = tokio::sync::mpsc::channel::<Bytes>(1);
    let pieces = stream::unfold(receiver, |mut receiver| async move {
        let piece = receiver.recv().await?;
        Some((Ok(Frame::data(piece)), receiver))
    });
    let slow = Request::post("http://device/slow").body(BodyExt::boxed(StreamBody::new(pieces)));
    let slow = tokio::spawn(ask.send_request(slow.unwrap()));
    sender.send(Bytes::from_static(b"12")).await.unwrap();
    // The device has received it, since it has answered a later request.
    answer_text(&mut ask, request(Method::GET, "/", String::new())).await;
    stop.send(()).unwrap();
    sender.send(Bytes::from_static(b"345")).await.unwrap();
    drop(sender);
    let answer = tokio::time::timeout(PATIENCE, slow).await.unwrap();
    let body = answer
        .unwrap()
        .unwrap()
        .into_body()
        .collect()
        .await
        .unwrap();
    assert_eq!(body.to_bytes(), "POST /slow 5");
    let served = tokio::time::timeout(PATIENCE, served).await.unwrap();
    served.unwrap().unwrap();
    tokio::time::timeout(PATIENCE, asking)
        .await
        .unwrap()
        .unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_cloud_that_no_longer_answers_is_gone_after_a_ping() {
    let (one, other) = tokio::io::duplex(8 << 10);
    let device = Device::default();
    let (pipe, _parting) = over(one, End::Device).await;
    let answer = move |request| device.clone().answer(request);
    let served = tokio::spawn(serve(pipe, answer, std::future::pending()));
    let (mut silent, closer) = over(other, End::Cloud).await;
    drop(closer);
    silent
        .write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0")
        .await
        .unwrap();
    silent.flush().await.unwrap();
    // Everything is read, and nothing is answered.
    let reading = tokio::spawn(async move {
        let mut buffer = [0; 1024];
        while silent.read(&mut buffer).await.is_ok_and(|read| read > 0) {}
    });
    let served = tokio::time::timeout(4 * PATIENCE, served).await.unwrap();
    assert!(served.unwrap().is_err());
    reading.await.unwrap();
}

/// Returns the result of a device's end that receives these messages.
async fn serve_result(messages: Vec<Message>) -> hyper::Result<()> {
    let (one, other) = tokio::io::duplex(1 << 20);
    let device = Device::default();
    let (pipe, closer) = over(one, End::Device).await;
    drop(closer);
    let answer = move |request| device.clone().answer(request);
    let served = tokio::spawn(serve(pipe, answer, std::future::pending()));
    let mut cloud: WebSocketStream<DuplexStream> =
        WebSocketStream::from_raw_socket(other, Role::Server, None).await;
    for message in messages {
        let _ = cloud.send(message).await;
    }
    let reading = async { while cloud.next().await.is_some_and(|read| read.is_ok()) {} };
    let (served, ()) = tokio::join!(tokio::time::timeout(PATIENCE, served), reading);
    served.unwrap().unwrap()
}

#[tokio::test]
async fn a_message_that_does_not_belong_in_a_tunnel_ends_it() {
    for messages in [
        vec![Message::text("hello")],
        vec![Message::binary(vec![0; 300 << 10])],
        vec![Message::binary(&b"GET / HTTP/1.1\r\n\r\n"[..])],
        vec![Message::Ping(Bytes::new()), Message::binary(vec![7; 100])],
    ] {
        let shown = format!("{:.40}", format!("{:?}", messages[0]));
        assert!(serve_result(messages).await.is_err(), "{shown}");
    }
    // A close frame is not an error.
    let _ = serve_result(vec![Message::Close(None)]).await;
}

/// Returns the message that a device receives when its cloud ends the tunnel, `cut` off in the middle of an answer or
/// idle.
async fn ended_with(farewell: CloseReason, cut: bool) -> Option<CloseMessage> {
    let (one, other) = tokio::io::duplex(8 << 10);
    let device = Device::default();
    let served = tokio::spawn(async move {
        let (pipe, closer) = over(one, End::Device).await;
        let answer = move |request| device.clone().answer(request);
        let _ = serve(pipe, answer, std::future::pending()).await;
        closer.close_message().await
    });
    let (pipe, closer): (_, TunnelCloser<DuplexStream>) = over(other, End::Cloud).await;
    let (mut ask, mut connection) = connect(pipe, Pings::default()).await.unwrap();
    let exchange = async {
        if cut {
            let endless = request(Method::GET, "/endless", String::new());
            Some(ask.send_request(endless).await.unwrap())
        } else {
            let found = answer_text(&mut ask, request(Method::GET, "/", String::new())).await;
            assert_eq!(found, "GET / 0");
            None
        }
    };
    let under_way = tokio::select! {
        under_way = exchange => under_way,
        ended = connection.ended() => panic!("{ended:?}"),
    };
    drop(ask);
    closer.set_reason(farewell);
    match under_way {
        None => connection.ended().await.unwrap(),
        Some(answer) => {
            connection.cut().await;
            let mut body = answer.into_body();
            while let Some(frame) = body.frame().await {
                if frame.is_err() {
                    break;
                }
            }
        }
    }
    closer.close().await;
    tokio::time::timeout(PATIENCE, served)
        .await
        .unwrap()
        .unwrap()
}

#[tokio::test]
async fn a_cloud_says_why_it_ends_a_tunnel_whether_or_not_something_is_under_way() {
    for farewell in [
        CloseReason::GoingAway,
        CloseReason::Replaced,
        CloseReason::Removed,
        CloseReason::KeyChanged,
    ] {
        for cut in [false, true] {
            let ended = tokio::time::timeout(PATIENCE, ended_with(farewell, cut)).await;
            let message = ended.unwrap().expect("a word");
            assert!(message.is(farewell), "{message} {cut}");
            let expected = format!("{} ({})", farewell.reason(), farewell.code());
            assert_eq!(message.to_string(), expected);
        }
    }
}
