//! Bytes in binary messages: what HTTP/2 reads and writes. Nothing of it waits here: a message is written when
//! the connection takes it, and read when somebody asks.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use futures::{Sink, SinkExt, Stream, StreamExt};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::protocol::{Role, WebSocketConfig};
use tokio_tungstenite::tungstenite::{Error, Message};
use tokio_util::io::{CopyToBytes, SinkWriter, StreamReader};

use crate::bounds::MESSAGE;

/// Which end of the tunnel one is: the device masks what it sends (RFC 6455, 5.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// The one that opened the connection.
    Device,
    /// The one that took it.
    Cloud,
}

/// A byte stream over the binary messages of `S`.
pub type Pipe<S> = SinkWriter<StreamReader<CopyToBytes<Messages<S>>, Bytes>>;

/// The binary messages of one connection.
pub struct Messages<S>(WebSocketStream<S>);

/// Makes a byte stream of a connection that has switched protocols. Text ends it with an error, and so does a
/// message that is too long; pings of the WebSocket are answered.
pub async fn over<S>(connection: S, end: End) -> Pipe<S>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let role = match end {
        End::Device => Role::Client,
        End::Cloud => Role::Server,
    };
    let config = WebSocketConfig::default()
        .read_buffer_size(16 << 10)
        // Written at each flush, of which HTTP/2 knows when.
        .write_buffer_size(16 << 10)
        .max_write_buffer_size(2 * MESSAGE)
        .max_message_size(Some(MESSAGE))
        .max_frame_size(Some(MESSAGE));
    let socket = WebSocketStream::from_raw_socket(connection, role, Some(config)).await;
    SinkWriter::new(StreamReader::new(CopyToBytes::new(Messages(socket))))
}

impl<S: AsyncRead + AsyncWrite + Unpin> Stream for Messages<S> {
    type Item = io::Result<Bytes>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        loop {
            let item = match ready!(self.0.poll_next_unpin(cx)) {
                None | Some(Ok(Message::Close(_))) => None,
                Some(Ok(Message::Binary(bytes))) => Some(Ok(bytes)),
                Some(Ok(Message::Ping(_) | Message::Pong(_) | Message::Frame(_))) => continue,
                Some(Ok(Message::Text(_))) => Some(Err(io::Error::new(
                    io::ErrorKind::InvalidData,
                    "a text message came through a tunnel, which has binary ones alone",
                ))),
                Some(Err(error)) => ended(error).map(Err),
            };
            return Poll::Ready(item);
        }
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> Sink<Bytes> for Messages<S> {
    type Error = io::Error;

    fn poll_ready(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.0.poll_ready_unpin(cx).map_err(failed)
    }

    fn start_send(mut self: Pin<&mut Self>, bytes: Bytes) -> io::Result<()> {
        self.0
            .start_send_unpin(Message::Binary(bytes))
            .map_err(failed)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.0.poll_flush_unpin(cx).map_err(failed)
    }

    fn poll_close(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.0.poll_close_unpin(cx).map_err(failed)
    }
}

/// A connection that ended without a word, or after it, has ended.
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
