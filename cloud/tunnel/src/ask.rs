//! The cloud's end: asks the device.

use hyper::client::conn::http2::{self, SendRequest};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};

use crate::bounds::{CONNECTION_WINDOW, HEAD, PING_EVERY, PONG_WITHIN, SEND_BUFFER, STREAM_WINDOW};

/// Sends requests to one device; clones share its tunnel. A request needs a URI with scheme and authority, as
/// HTTP/2 has it, whatever they are. Dropping an answer's body tells the device that nobody reads it.
pub type Ask<B> = SendRequest<B>;

/// The tunnel of one device. It works for as long as it is polled, and ends with the connection, or when the
/// last [`Ask`] is dropped and nothing is under way.
pub type Connection<P, B> = http2::Connection<TokioIo<P>, B, TokioExecutor>;

/// Begins to speak to the device at the other end of `pipe`. Whoever calls it spawns the [`Connection`].
///
/// # Errors
/// Where the connection breaks at once.
pub async fn connect<P, B>(pipe: P) -> hyper::Result<(Ask<B>, Connection<P, B>)>
where
    P: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    B: http_body::Body + Unpin + Send + 'static,
    B::Data: Send,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    http2::Builder::new(TokioExecutor::new())
        .timer(TokioTimer::new())
        .adaptive_window(false)
        .initial_stream_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW)
        .max_header_list_size(HEAD)
        .max_send_buf_size(SEND_BUFFER)
        .keep_alive_interval(PING_EVERY)
        .keep_alive_timeout(PONG_WITHIN)
        .keep_alive_while_idle(true)
        .handshake(TokioIo::new(pipe))
        .await
}
