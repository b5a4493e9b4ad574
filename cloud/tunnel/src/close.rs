//! The last word of a tunnel: the close frame of its WebSocket (RFC 6455, 7.4), by which a device knows why the
//! cloud let it go, and when to come back.

use std::fmt;
use std::future::poll_fn;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};

use futures::{SinkExt, StreamExt};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::protocol::CloseFrame;
use tokio_tungstenite::tungstenite::{Error, Message};

/// Why the cloud ends a tunnel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CloseReason {
    /// This replica of the cloud ends; another one, or this one in a moment, takes the device.
    GoingAway,
    /// The device has opened another tunnel.
    Replaced,
    /// The cloud no longer knows the device.
    Removed,
    /// The key by which the tunnel was opened was revoked, or may have been: who has a good one comes back.
    KeyChanged,
}

impl CloseReason {
    /// The code of the close frame. Of those that are not the standard's own, from 4000 on.
    #[must_use]
    pub fn code(self) -> u16 {
        match self {
            CloseReason::GoingAway => 1001,
            CloseReason::Replaced => 4001,
            CloseReason::Removed => 4002,
            CloseReason::KeyChanged => 4003,
        }
    }

    /// The text of the close frame, for the device's log.
    #[must_use]
    pub fn reason(self) -> &'static str {
        match self {
            CloseReason::GoingAway => "this cloud is stopping or restarting: reconnect at once",
            CloseReason::Replaced => "another connection of this device has taken its place",
            CloseReason::Removed => "this device was removed from the cloud",
            CloseReason::KeyChanged => "the key of this device was changed or revoked",
        }
    }
}

/// What the other end said when it closed the tunnel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CloseMessage {
    code: u16,
    /// invariant: without control characters
    reason: String,
}

impl CloseMessage {
    /// Whether it was this.
    #[must_use]
    pub fn is(&self, close_reason: CloseReason) -> bool {
        self.code == close_reason.code()
    }

    fn of(frame: &CloseFrame) -> Self {
        let plain = |c: char| if c.is_control() { ' ' } else { c };
        CloseMessage {
            code: frame.code.into(),
            // The protocol has it no longer than 123 bytes.
            reason: frame.reason.chars().map(plain).collect(),
        }
    }
}

impl fmt::Display for CloseMessage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.reason.as_str() {
            "" => write!(f, "code {}", self.code),
            reason => write!(f, "{reason} ({})", self.code),
        }
    }
}

/// The WebSocket of a tunnel, and how it is closed.
pub(crate) struct Socket<S> {
    pub(crate) stream: WebSocketStream<S>,
    reason_to_send: Option<CloseReason>,
    last_word: Option<CloseMessage>,
}

impl<S: AsyncRead + AsyncWrite + Unpin> Socket<S> {
    pub(crate) fn poll_message(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Message, Error>>> {
        let message = ready!(self.stream.poll_next_unpin(cx));
        if let Some(Ok(Message::Close(Some(frame)))) = &message {
            self.last_word = Some(CloseMessage::of(frame));
        }
        Poll::Ready(message)
    }

    pub(crate) fn poll_close(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Error>> {
        if let Some(close_reason) = self.reason_to_send {
            ready!(self.stream.poll_ready_unpin(cx))?;
            self.reason_to_send = None;
            let frame = CloseFrame {
                code: close_reason.code().into(),
                reason: close_reason.reason().into(),
            };
            // An error says that it is closed already, which comes out below.
            let _ = self.stream.start_send_unpin(Message::Close(Some(frame)));
        }
        self.stream.poll_close_unpin(cx)
    }
}

/// The socket as both the pipe and whoever closes it hold it; one of them uses it at a time.
pub(crate) struct SharedSocket<S>(Arc<Mutex<Socket<S>>>);

impl<S> Clone for SharedSocket<S> {
    fn clone(&self) -> Self {
        SharedSocket(Arc::clone(&self.0))
    }
}

impl<S> SharedSocket<S> {
    pub(crate) fn new(stream: WebSocketStream<S>) -> Self {
        let (reason_to_send, last_word) = (None, None);
        SharedSocket(Arc::new(Mutex::new(Socket {
            stream,
            reason_to_send,
            last_word,
        })))
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, Socket<S>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// How a tunnel ends with a word. Of [`crate::over`], for as long as the connection is wanted: it keeps it open.
pub struct TunnelCloser<S>(pub(crate) SharedSocket<S>);

impl<S: AsyncRead + AsyncWrite + Unpin> TunnelCloser<S> {
    /// The connection is closed with this word, once something closes it.
    pub fn say(&self, close_reason: CloseReason) {
        self.0.lock().reason_to_send = Some(close_reason);
    }

    /// Closes the connection with its word, when the [`crate::Pipe`] is no longer used, and waits until the
    /// other end has closed it as well: without a limit of time, which is the caller's.
    pub async fn close(self) {
        if poll_fn(|cx| self.0.lock().poll_close(cx)).await.is_ok() {
            while self.reads().await {}
        }
    }

    /// What the other end says at the end, when the [`crate::Pipe`] is no longer used. It waits for it, without a
    /// limit of time, which is the caller's.
    pub async fn heard(self) -> Option<CloseMessage> {
        loop {
            let message = self.0.lock().last_word.take();
            if message.is_some() || !self.reads().await {
                return message;
            }
        }
    }

    /// Passes over one message; false where there is none any more.
    async fn reads(&self) -> bool {
        let message = poll_fn(|cx| self.0.lock().poll_message(cx)).await;
        matches!(message, Some(Ok(_)))
    }
}
