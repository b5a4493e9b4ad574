//! One connection: HTTP/1.1 on a socket, until the client leaves, is too slow, or the API stops.

use std::convert::Infallible;
use std::time::Duration;

use axum::body::Body;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use rustix::net::sockopt;
use tokio::net::TcpStream;
use tokio_util::sync::CancellationToken;

use crate::app::App;
use crate::unread::Received;

/// How long a client may take to send the head of a request. Also how long a connection may be idle.
const HEAD_WITHIN: Duration = if cfg!(test) {
    Duration::from_secs(2)
} else {
    Duration::from_secs(30)
};
/// The longest head, and how much of an answer is held for a client that reads slowly, in bytes.
const BUFFER: usize = 64 << 10;
/// How much of an answer the kernel holds for a client that reads slowly, in bytes. Left to itself it
/// holds megabytes for each.
const KERNEL_BUFFER: usize = 256 << 10;
/// How long a client may leave what it is sent unread, or be silent on a connection that streams to it,
/// before its connection ends (device behaviour 1.0, "Socket timeout").
const UNREAD_FOR: Duration = Duration::from_secs(15 * 60);

/// Serves one connection. When `stopping` is cancelled the request under way is finished and no other is
/// taken.
pub(crate) async fn serve(app: App, stream: TcpStream, stopping: CancellationToken) {
    if let Err(error) = prepare(&stream) {
        tracing::debug!(%error, "failed to set up a connection");
        return;
    }
    let service = service_fn(|request: http::Request<hyper::body::Incoming>| {
        let app = &app;
        async move {
            let (head, body) = request.into_parts();
            let body = if hyper::body::Body::is_end_stream(&body) {
                Body::empty()
            } else {
                Body::new(Received::new(body, &head.headers))
            };
            let request = http::Request::from_parts(head, body);
            Ok::<_, Infallible>(app.answer(request).await)
        }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_WITHIN)
        // Not `pipeline_flush`: with it a body that is always ready is taken in without bound, whoever
        // reads or does not read it.
        .max_buf_size(BUFFER)
        .serve_connection(TokioIo::new(stream), service);
    let mut connection = std::pin::pin!(connection);
    let ended = tokio::select! {
        ended = connection.as_mut() => ended,
        () = stopping.cancelled() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = ended {
        // Clients that leave or send something else than HTTP; nothing that we could do better.
        tracing::debug!(%error, "a connection ended early");
    }
}

fn prepare(stream: &TcpStream) -> std::io::Result<()> {
    // Answers are small and written whole: waiting to fill a packet would only delay them.
    stream.set_nodelay(true)?;
    sockopt::set_socket_send_buffer_size(stream, KERNEL_BUFFER)?;
    sockopt::set_socket_keepalive(stream, true)?;
    let unread = u32::try_from(UNREAD_FOR.as_millis()).unwrap_or(u32::MAX);
    sockopt::set_tcp_user_timeout(stream, unread)?;
    Ok(())
}
