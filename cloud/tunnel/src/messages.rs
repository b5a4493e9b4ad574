//! Bytes in binary messages, which HTTP/2 reads and writes. Nothing is buffered here: a message is written when the
//! connection accepts it, and read on demand.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use futures::{Sink, SinkExt, Stream};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::protocol::{Role, WebSocketConfig};
use tokio_tungstenite::tungstenite::{Error, Message};
use tokio_util::io::{CopyToBytes, SinkWriter, StreamReader};

use crate::bounds::MESSAGE;
use crate::close::{SharedSocket, TunnelCloser};

/// The end of the tunnel that this program is: the device masks what it sends (RFC 6455, 5.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// The end that opened the connection.
    Device,
    /// The end that accepted it.
    Cloud,
}

/// A byte stream over the binary messages of `S`.
pub type Pipe<S> = SinkWriter<StreamReader<CopyToBytes<Messages<S>>, Bytes>>;

/// The binary messages of one connection.
pub struct Messages<S>(SharedSocket<S>);

/// Turns a connection that has switched protocols into a byte stream, which can be closed with a reason. A text message
/// or one that is too long ends it with an error; pings of the WebSocket are answered.
pub async fn over<S>(connection: S, end: End) -> (Pipe<S>, TunnelCloser<S>)
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let role = match end {
        End::Device => Role::Client,
        End::Cloud => Role::Server,
    };
    let config = WebSocketConfig::default()
        .read_buffer_size(16 << 10)
        // Written at each flush; HTTP/2 decides when that is.
        .write_buffer_size(16 << 10)
        .max_write_buffer_size(2 * MESSAGE)
        .max_message_size(Some(MESSAGE))
        .max_frame_size(Some(MESSAGE));
    let socket = WebSocketStream::from_raw_socket(connection, role, Some(config)).await;
    let socket = SharedSocket::new(socket);
    let messages = Messages(socket.clone());
    let pipe = SinkWriter::new(StreamReader::new(CopyToBytes::new(messages)));
    (pipe, TunnelCloser(socket))
}

impl<S: AsyncRead + AsyncWrite + Unpin> Stream for Messages<S> {
    type Item = io::Result<Bytes>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        loop {
            let item = match ready!(self.0.lock().poll_message(cx)) {
                None | Some(Ok(Message::Close(_))) => None,
                Some(Ok(Message::Binary(bytes))) => Some(Ok(bytes)),
                Some(Ok(Message::Ping(_) | Message::Pong(_) | Message::Frame(_))) => continue,
                Some(Ok(Message::Text(_))) => Some(Err(io::Error::new(
                    io::ErrorKind::InvalidData,
                    "the other end sent a text message, but the tunnel carries only binary messages",
                ))),
                Some(Err(error)) => ended(error).map(Err),
            };
            return Poll::Ready(item);
        }
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> Sink<Bytes> for Messages<S> {
    type Error = io::Error;

    fn poll_ready(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.0.lock().stream.poll_ready_unpin(cx).map_err(failed)
    }

    fn start_send(self: Pin<&mut Self>, bytes: Bytes) -> io::Result<()> {
        let mut socket = self.0.lock();
        socket
            .stream
            .start_send_unpin(Message::Binary(bytes))
            .map_err(failed)
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.0.lock().stream.poll_flush_unpin(cx).map_err(failed)
    }

    fn poll_close(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.0.lock().poll_close(cx).map_err(failed)
    }
}

/// Returns the error that ended a connection, or `None` if it was closed, with or without a close frame.
fn ended(error: Error) -> Option<io::Error> {
    match error {
        Error::ConnectionClosed | Error::AlreadyClosed => None,
        other => Some(failed(other)),
    }
}

fn failed(error: Error) -> io::Error {
    match error {
        Error::Io(error) => error,
        Error::ConnectionClosed | Error::AlreadyClosed => io::ErrorKind::BrokenPipe.into(),
        other => io::Error::other(other),
    }
}
