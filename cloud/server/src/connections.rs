//! Accepts connections, as many as fit, and applies time limits to each (see `bounds`).
//!
//! ```text
//! accept ── slot (by address and over all) ── HTTP/1.1 on a socket that records activity
//!                                          └─ a regular check for sockets without activity
//! ```
//!
//! A connection that became a tunnel keeps its slot and has its own time limits (`[reach]`).

mod activity;
mod received;
mod slots;
mod socket;

use std::convert::Infallible;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use axum::body::Body;
use axum::extract::{ConnectInfo, Request};
use axum::http::HeaderValue;
use axum::http::header::{CONNECTION, EXPECT};
use axum::response::Response;
use futures::StreamExt as _;
use futures::future::OptionFuture;
use futures::stream::FuturesUnordered;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use ipnet::IpNet;
use rustix::net::sockopt;
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{Instant, sleep, sleep_until};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::bounds::{BUFFER, Bounds, SYSTEM_BUFFER, UNACKNOWLEDGED};
use activity::{Activity, AnswerBody};
use received::{BodyState, RequestBody};
use slots::{Slot, Slots};
use socket::Socket;

/// The pause after a failure to accept a connection, which is mostly due to a lack of file descriptors.
const AFTER_FAILURE: Duration = Duration::from_millis(100);
/// The answer to a connection beyond the limit.
const FULL: &[u8] =
    b"HTTP/1.1 503 Service Unavailable\r\nretry-after: 5\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";

/// The connection of a request, among the request's extensions.
#[derive(Clone)]
pub(crate) struct Connection {
    slot: Arc<Slot>,
    /// The body of this request.
    body: Arc<BodyState>,
}

impl Connection {
    /// Marks the connection as one that carries a tunnel or the logs of a device, which has presented its key: many
    /// devices may share an address.
    pub(crate) fn is_of_a_device(&self) {
        self.slot.is_of_a_device();
    }

    /// Marks the body of this request as one that is sent gradually, as its lines are written.
    pub(crate) fn has_long_body(&self) {
        self.body.long.store(true, Ordering::Relaxed);
    }
}

/// Answers the requests of connections.
pub(crate) trait RequestHandler: Clone + Send + Sync + 'static {
    /// Answers one request.
    fn answer(&self, request: Request) -> impl Future<Output = Response> + Send;
}

/// Serves until `stop`. After that, nothing more is accepted, and it ends when the requests in progress have ended.
pub(crate) async fn serve(
    listener: TcpListener,
    handler: impl RequestHandler,
    bounds: Bounds,
    proxies: Vec<IpNet>,
    stop: CancellationToken,
) {
    let slots = Slots::new(bounds, proxies);
    let open = TaskTracker::new();
    let accepting = async {
        loop {
            match listener.accept().await {
                Ok((stream, peer)) => match slots.take(peer.ip()) {
                    Some(slot) => {
                        let (handler, stop) = (handler.clone(), stop.clone());
                        open.spawn(one(stream, peer, slot, handler, bounds, stop));
                    }
                    None => refuse(&stream, peer),
                },
                Err(error) => {
                    tracing::warn!("failed to accept a connection: {error}");
                    sleep(AFTER_FAILURE).await;
                }
            }
        }
    };
    stop.run_until_cancelled(accepting).await;
    drop(listener);
    open.close();
    open.wait().await;
}

/// Reports this to the client at once, if the system accepts the data without waiting.
fn refuse(stream: &TcpStream, peer: SocketAddr) {
    tracing::debug!(%peer, "a connection too many");
    let _ = stream.try_write(FULL);
}

/// Serves one connection, until its client leaves or is too slow, or the program ends.
async fn one(
    stream: TcpStream,
    peer: SocketAddr,
    slot: Slot,
    handler: impl RequestHandler,
    bounds: Bounds,
    stop: CancellationToken,
) {
    if let Err(error) = prepare(&stream) {
        tracing::debug!(%peer, %error, "a connection may be slow to end");
    }
    let slot = Arc::new(slot);
    let activity = slot.activity().clone();
    let socket = Socket::new(stream, slot.clone());
    let service = service_fn(|request: http::Request<hyper::body::Incoming>| {
        let under_way = activity.request();
        let state = Arc::<BodyState>::default();
        let on_request = request.headers().contains_key(EXPECT);
        let mut request = request.map(|body| {
            if hyper::body::Body::is_end_stream(&body) {
                Body::empty()
            } else {
                Body::new(RequestBody::new(
                    body,
                    bounds.body,
                    on_request,
                    state.clone(),
                    activity.clone(),
                ))
            }
        });
        let extensions = request.extensions_mut();
        extensions.insert(ConnectInfo(peer));
        extensions.insert(Connection {
            slot: slot.clone(),
            body: state.clone(),
        });
        let handler = &handler;
        async move {
            let mut answer = handler.answer(request).await;
            if state.ends_connection() {
                let close = HeaderValue::from_static("close");
                answer.headers_mut().insert(CONNECTION, close);
            }
            Ok::<_, Infallible>(answer.map(|body| AnswerBody::new(body, under_way)))
        }
    });
    let serving = http1::Builder::new()
        .max_buf_size(BUFFER)
        .serve_connection(TokioIo::new(socket), service)
        .with_upgrades();
    let mut serving = pin!(serving);
    // Polled only when one of its own events occurs, not each time the connection makes progress.
    let mut outside = FuturesUnordered::new();
    outside.push(interrupted(Some(&stop), &slot, &activity, &bounds));
    let ended = loop {
        tokio::select! {
            biased;
            ended = serving.as_mut() => break ended,
            Some(why) = outside.next() => match why {
                Interruption::Stop => {
                    serving.as_mut().graceful_shutdown();
                    outside.push(interrupted(None, &slot, &activity, &bounds));
                }
                Interruption::Displaced => {
                    tracing::debug!(%peer, "an idle connection made room for another");
                    return;
                }
                Interruption::Overdue(why) => {
                    tracing::debug!(%peer, "a connection ends: {why}");
                    return;
                }
            },
        }
    };
    if let Err(error) = ended {
        // Clients that leave, or send something other than HTTP.
        tracing::debug!(%peer, %error, "a connection ended early");
    }
}

/// Why a connection ends or has to end without an action of its client.
enum Interruption {
    /// The program ends.
    Stop,
    /// Another client needs its place more.
    Displaced,
    /// This has made no progress for too long.
    Overdue(&'static str),
}

/// Returns the next interruption; the program's end only if there is a `stop`.
async fn interrupted(
    stop: Option<&CancellationToken>,
    slot: &Slot,
    activity: &Activity,
    bounds: &Bounds,
) -> Interruption {
    let stopped = OptionFuture::from(stop.map(CancellationToken::cancelled));
    tokio::select! {
        Some(()) = stopped => Interruption::Stop,
        () = slot.ended() => Interruption::Displaced,
        why = overdue(activity, bounds) => Interruption::Overdue(why),
    }
}

/// Returns when something has made no progress for too long, and what it is.
async fn overdue(activity: &Activity, bounds: &Bounds) -> &'static str {
    loop {
        match activity.overdue(bounds, Instant::now()) {
            Ok(look) => sleep_until(look).await,
            Err(why) => return why,
        }
    }
}

fn prepare(stream: &TcpStream) -> std::io::Result<()> {
    // Small messages are sent at once: otherwise, a tunnel waits 40 ms for each step of its windows.
    stream.set_nodelay(true)?;
    sockopt::set_socket_send_buffer_size(stream, SYSTEM_BUFFER)?;
    sockopt::set_socket_keepalive(stream, true)?;
    let milliseconds = u32::try_from(UNACKNOWLEDGED.as_millis()).unwrap_or(u32::MAX);
    sockopt::set_tcp_user_timeout(stream, milliseconds)?;
    Ok(())
}
