//! Requests to a device that is connected to another replica.
//!
//! ```text
//! the caller                                    the holder of the device's tunnel
//!   … .device.<id>.call ── request: an inbox ──►  one subscription for each tunnel
//!                       ◄─ reply: another inbox ──
//!   HTTP/2 over the two inboxes ◄────────────────►  the request, on the tunnel; its answer as it arrives
//! ```
//!
//! The server reports at once if nobody holds the device. HTTP/2, as in the tunnel, limits unread data, reports to the
//! answering side that the reader is gone, and detects a replica that is gone.

use std::sync::Arc;
use std::time::Duration;

use async_nats::client::RequestErrorKind;
use async_nats::{Client, Message, Request};
use axum::body::{Body, Bytes};
use futures::StreamExt as _;
use http::{HeaderName, HeaderValue, Response, StatusCode, header};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::Incoming;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tunnel::Pings;

use super::nats::Nats;
use super::pipe::{self, PipeReader};
use super::subjects::is_inbox;

/// Sends requests to one device.
pub type DeviceClient = tunnel::RequestSender<Full<Bytes>>;

/// How long the replica that holds a device may take to accept a call, and the caller to begin it.
const OPEN: Duration = Duration::from_secs(5);
/// Detect a replica that is gone within this many seconds at most, and end the requests that wait for its answer.
const PINGS: Pings = Pings {
    every: Duration::from_secs(2),
    within: Duration::from_secs(4),
};
/// Maximum number of simultaneous calls of one device; more are refused.
const AT_ONCE: usize = 256;
/// Maximum body of a request, in bytes: callers are limited to less.
const BODY: usize = 1 << 20;
/// The reply to a call beyond the limit.
const BUSY: &[u8] = b"busy";
/// Marks an answer that is not from the device, because the device gave none.
pub(crate) const NO_ANSWER: HeaderName = HeaderName::from_static("fleet-no-answer");

/// Why a device cannot be reached.
#[derive(Debug, thiserror::Error)]
pub enum CallError {
    /// No replica holds a tunnel of the device.
    #[error("the device is not connected")]
    Away,
    /// Too many requests to it are in progress.
    #[error("{AT_ONCE} other requests to the device are in progress; try again")]
    Busy,
    /// The bus does not work, so the state of the device is unknown.
    #[error("other replicas cannot be reached at the moment; try again")]
    Bus,
}

/// Opens a call of a device, to the replica that holds its tunnel.
pub(super) async fn open(nats: &Nats, device: i64) -> Result<DeviceClient, CallError> {
    if !nats.is_connected() {
        return Err(CallError::Bus);
    }
    let client = nats.client();
    let inbox = client.new_inbox();
    let broken = |error: &dyn std::fmt::Display| {
        tracing::warn!(device, "cannot send a request to another replica: {error}");
        CallError::Bus
    };
    let answers = client.subscribe(inbox.clone()).await;
    let answers = answers.map_err(|error| broken(&error))?;
    let request = Request::new().payload(inbox.into()).timeout(Some(OPEN));
    let subject = nats.subjects().calls(device);
    let reply = match client.send_request(subject, request).await {
        Ok(reply) => reply.payload,
        Err(error) if error.kind() == RequestErrorKind::NoResponders => {
            return Err(CallError::Away);
        }
        Err(error) => return Err(broken(&error)),
    };
    if reply == BUSY {
        return Err(CallError::Busy);
    }
    let to = match std::str::from_utf8(&reply) {
        Ok(to) if is_inbox(to) => to.to_owned(),
        _ => return Err(broken(&"its reply is invalid")),
    };
    let pipe = pipe::over(client.clone(), PipeReader::new(answers), to);
    let (device_client, mut connection) = tunnel::connect(pipe, PINGS)
        .await
        .map_err(|error| broken(&error))?;
    tokio::spawn(async move {
        if let Err(error) = connection.ended().await {
            tracing::debug!(device, %error, "a call of another replica broke");
        }
    });
    Ok(device_client)
}

/// Accepts calls of a device that is connected here, until `ending`, then finishes the calls in progress. Dropping the
/// future cuts them off.
pub(super) async fn take(
    nats: &Nats,
    device: i64,
    device_client: DeviceClient,
    ending: &CancellationToken,
) {
    let mut calls = match nats.client().subscribe(nats.subjects().calls(device)).await {
        Ok(calls) => calls,
        Err(error) => {
            tracing::warn!(
                device,
                "other replicas cannot send requests to a device: {error}"
            );
            return;
        }
    };
    let free = Arc::new(Semaphore::new(AT_ONCE));
    let mut calls_under_way = JoinSet::new();
    while let Some(Some(call)) = ending.run_until_cancelled(calls.next()).await {
        while calls_under_way.try_join_next().is_some() {}
        match free.clone().try_acquire_owned() {
            Ok(held) => {
                let (client, device_client) = (nats.client().clone(), device_client.clone());
                calls_under_way.spawn(async move {
                    answer(client, call, device_client).await;
                    drop(held);
                });
            }
            Err(_) => {
                if let Some(reply) = call.reply {
                    let _ = nats.client().publish(reply, BUSY.into()).await;
                }
            }
        }
    }
    drop((calls, device_client));
    while calls_under_way.join_next().await.is_some() {}
}

/// Handles one call: passes its requests on to the device.
async fn answer(client: Client, call: Message, device_client: DeviceClient) {
    let (Some(reply), Ok(to)) = (call.reply, std::str::from_utf8(&call.payload)) else {
        return;
    };
    if !is_inbox(to) || !is_inbox(&reply) && !reply.starts_with("_INBOX.") {
        return;
    }
    let inbox = client.new_inbox();
    let Ok(requests) = client.subscribe(inbox.clone()).await else {
        return;
    };
    if client.publish(reply, inbox.into()).await.is_err() {
        return;
    }
    let mut requests = PipeReader::new(requests);
    // If two replicas hold a tunnel and one is broken, the caller uses the other one.
    if !timeout(OPEN, requests.begun()).await.unwrap_or_default() {
        return;
    }
    let pipe = pipe::over(client, requests, to.to_owned());
    let pass_on = move |request| {
        let device_client = device_client.clone();
        async move {
            passed_on(device_client, request)
                .await
                .unwrap_or_else(|()| no_answer())
        }
    };
    if let Err(error) = tunnel::serve(pipe, pass_on, std::future::pending()).await {
        tracing::debug!(%error, "a call of another replica broke");
    }
}

async fn passed_on(
    mut device_client: DeviceClient,
    request: http::Request<Incoming>,
) -> Result<Response<Body>, ()> {
    let (head, body) = request.into_parts();
    let body = Limited::new(body, BODY)
        .collect()
        .await
        .map_err(drop)?
        .to_bytes();
    let mut request = http::Request::new(Full::new(body));
    *request.method_mut() = head.method;
    *request.uri_mut() = head.uri;
    if let Some(kind) = head.headers.get(header::CONTENT_TYPE) {
        request
            .headers_mut()
            .insert(header::CONTENT_TYPE, kind.clone());
    }
    device_client.ready().await.map_err(drop)?;
    let mut answer = device_client.send_request(request).await.map_err(drop)?;
    answer.headers_mut().remove(NO_ANSWER);
    Ok(answer.map(Body::new))
}

fn no_answer() -> Response<Body> {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::BAD_GATEWAY;
    response
        .headers_mut()
        .insert(NO_ANSWER, HeaderValue::from_static("1"));
    response
}
