//! The device's end, which answers the cloud's requests.

use std::convert::Infallible;
use std::future::Future;
use std::pin::pin;

use http::{Request, Response};
use http_body::Body;
use hyper::body::Incoming;
use hyper::server::conn::http2;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};

use crate::bounds::{CONNECTION_WINDOW, HEAD, PING_EVERY, PONG_WITHIN, SEND_BUFFER, STREAM_WINDOW};

/// The number of concurrent requests; the cloud's next one waits.
const STREAMS: u32 = 32;
/// The number of streams that the cloud opened and abandoned, and that still occupy memory: more end the tunnel.
const RESETS: usize = 32;

/// Answers requests on `pipe` until the cloud closes it, it breaks, or the cloud leaves a ping unanswered. When
/// `stopping` completes, pending requests are finished and no further ones are accepted.
///
/// # Errors
/// The cause, if the connection broke.
pub async fn serve<P, F, A, B>(
    pipe: P,
    answer: F,
    stopping: impl Future<Output = ()>,
) -> hyper::Result<()>
where
    P: AsyncRead + AsyncWrite + Unpin,
    F: Fn(Request<Incoming>) -> A,
    A: Future<Output = Response<B>> + Send + 'static,
    B: Body + Send + 'static,
    B::Data: Send,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let service = service_fn(move |request| {
        let answer = answer(request);
        async move { Ok::<_, Infallible>(answer.await) }
    });
    let connection = http2::Builder::new(TokioExecutor::new())
        .timer(TokioTimer::new())
        .adaptive_window(false)
        .initial_stream_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW)
        .max_concurrent_streams(STREAMS)
        .max_header_list_size(HEAD)
        .max_send_buf_size(SEND_BUFFER)
        .max_pending_accept_reset_streams(RESETS)
        .max_local_error_reset_streams(RESETS)
        .keep_alive_interval(PING_EVERY)
        .keep_alive_timeout(PONG_WITHIN)
        .serve_connection(TokioIo::new(pipe), service);
    let (mut connection, mut stopping) = (pin!(connection), pin!(stopping));
    tokio::select! {
        ended = connection.as_mut() => ended,
        () = stopping.as_mut() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    }
}
