//! Input that no proper peer would send: each end of a tunnel ends or continues, but never crashes the program.

#![expect(
    clippy::unwrap_used,
    reason = "also the helpers of a test fail with what they did not find"
)]

use std::convert::Infallible;
use std::time::Duration;

use bytes::Bytes;
use futures::{SinkExt, StreamExt};
use http::{Request, Response};
use http_body_util::{BodyExt, Empty, Full};
use hyper::body::Incoming;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::Role;

use crate::{End, Pings, connect, over, serve};

/// The time within which an end must notice that its peer has gone.
const PATIENCE: Duration = Duration::from_secs(20);
/// The beginning of an HTTP/2 connection: the client's preface, and settings with default values.
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
const SETTINGS: &[u8] = b"\0\0\0\x04\0\0\0\0\0";
/// `GET /` to `http://a`, compressed by the static table.
const HEADERS: &[u8] = b"\x82\x86\x84\x41\x01a";

/// The input: messages of a tunnel, or bytes that are not messages at all.
#[derive(Debug, Clone)]
enum TunnelInput {
    Messages(Vec<Message>),
    Bytes(Vec<u8>),
}

/// Generates an HTTP/2 frame of an existing type, with a payload that may fit it, on a stream that may be open.
fn frame() -> impl Strategy<Value = Vec<u8>> {
    let payload = prop_oneof![
        3 => Just(HEADERS.to_vec()),
        3 => vec(any::<u8>(), 0..40),
        1 => Just(vec![0; 8]),
        1 => vec(select(&[0_u8, 1, 2, 3, 4, 5, 6, 0xff, 0x7f, 0x80][..]), 4..=12),
        1 => vec(any::<u8>(), 0..20_000),
    ];
    let length = prop_oneof![6 => Just(None), 1 => (0_usize..0x00ff_ffff).prop_map(Some)];
    let stream = prop_oneof![4 => 0_u32..6, 1 => any::<u32>()];
    let flags = prop_oneof![4 => select(&[0_u8, 1, 4, 5, 0x24, 0x2d][..]), 1 => any::<u8>()];
    (length, 0_u8..12, flags, stream, payload).prop_map(|(length, kind, flags, stream, payload)| {
        let length = u32::try_from(length.unwrap_or(payload.len())).unwrap();
        let mut frame = length.to_be_bytes()[1..].to_vec();
        frame.extend([kind, flags]);
        frame.extend(stream.to_be_bytes());
        frame.extend(payload);
        frame
    })
}

fn sent() -> impl Strategy<Value = TunnelInput> {
    let begun = any::<bool>();
    let message = prop_oneof![
        12 => frame().prop_map(Message::binary),
        1 => vec(any::<u8>(), 0..300).prop_map(Message::binary),
        1 => Just(Message::text("x")),
        1 => vec(any::<u8>(), 0..125).prop_map(|it| Message::Ping(it.into())),
        1 => Just(Message::Close(None)),
    ];
    let messages = (begun, vec(message, 0..20)).prop_map(|(begun, mut messages)| {
        if begun {
            messages.insert(0, Message::binary([PREFACE, SETTINGS].concat()));
        }
        TunnelInput::Messages(messages)
    });
    let bytes = vec(
        prop_oneof![
            vec(any::<u8>(), 0..30),
            // Heads of WebSocket frames, masked or not.
            (
                select(&[0x80_u8, 0x81, 0x82, 0x02, 0x88, 0x89, 0xf2][..]),
                any::<u8>()
            )
                .prop_map(|(a, b)| vec![a, b]),
        ],
        0..20,
    );
    prop_oneof![4 => messages, 1 => bytes.prop_map(|it| TunnelInput::Bytes(it.concat()))]
}

/// Sends the input, reads any output, and disconnects.
async fn send(to: DuplexStream, role: Role, sent: TunnelInput) {
    match sent {
        TunnelInput::Bytes(bytes) => {
            let (mut reader, mut writer) = tokio::io::split(to);
            let writing = async {
                let _ = writer.write_all(&bytes).await;
                let _ = writer.shutdown().await;
            };
            let mut read = Vec::new();
            let reading = reader.read_to_end(&mut read);
            let _ = tokio::join!(writing, reading);
        }
        TunnelInput::Messages(messages) => {
            let (mut sink, mut stream) = WebSocketStream::from_raw_socket(to, role, None)
                .await
                .split();
            let writing = async {
                for message in messages {
                    if sink.send(message).await.is_err() {
                        break;
                    }
                }
                let _ = sink.close().await;
            };
            let reading = async { while stream.next().await.is_some_and(|it| it.is_ok()) {} };
            tokio::join!(writing, reading);
        }
    }
}

async fn answer(request: Request<Incoming>) -> Response<Full<Bytes>> {
    // The body must be read before the answer is sent.
    let body = request
        .into_body()
        .collect()
        .await
        .map(|body| body.to_bytes());
    Response::new(Full::new(body.unwrap_or_default()))
}

fn ends(run: impl Future<Output = ()>) -> Result<(), TestCaseError> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let ended = runtime.block_on(async { tokio::time::timeout(PATIENCE, run).await });
    prop_assert!(ended.is_ok(), "it goes on for {PATIENCE:?} without a peer");
    Ok(())
}

#[test]
fn a_device_survives_any_message_of_its_cloud() {
    fuzz::run("tunnel-device", 150, &sent(), |sent| {
        ends(async {
            let (one, other) = tokio::io::duplex(8 << 10);
            let (pipe, closer) = over(one, End::Device).await;
            drop(closer);
            let answer = |request| async { Ok::<_, Infallible>(answer(request).await) };
            let answer = move |request| {
                let answer = answer(request);
                async move { answer.await.unwrap_or_else(|never| match never {}) }
            };
            let serving = serve(pipe, answer, std::future::pending());
            let _ = tokio::join!(serving, send(other, Role::Server, sent));
        })
    });
}

#[test]
fn a_cloud_survives_any_message_of_a_device() {
    fuzz::run("tunnel-cloud", 150, &sent(), |sent| {
        ends(async {
            let (one, other) = tokio::io::duplex(8 << 10);
            let asking = async {
                let (pipe, closer) = over(one, End::Cloud).await;
                drop(closer);
                let Ok((mut ask, mut connection)) =
                    connect::<_, Empty<Bytes>>(pipe, Pings::default()).await
                else {
                    return;
                };
                let request = Request::get("http://device/").body(Empty::new()).unwrap();
                let exchange = async {
                    if let Ok(answer) = ask.send_request(request).await {
                        let _ = answer.into_body().collect().await;
                    }
                    drop(ask);
                };
                let _ = tokio::join!(exchange, connection.ended());
            };
            tokio::join!(asking, send(other, Role::Client, sent));
        })
    });
}
