//! The end of a tunnel: the close frame of its WebSocket (RFC 6455, 7.4), which tells a device why the cloud ended the
//! tunnel, and when to come back.

use std::fmt;
use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use futures::{SinkExt, StreamExt};
use parking_lot::{Mutex, MutexGuard};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::protocol::CloseFrame;
use tokio_tungstenite::tungstenite::{Error, Message};

/// Why the cloud ends a tunnel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CloseReason {
    /// This replica of the cloud stops; another one, or this one in a moment, accepts the device.
    GoingAway,
    /// The device has opened another tunnel.
    Replaced,
    /// The cloud no longer knows the device.
    Removed,
    /// The key that opened the tunnel was revoked, or may have been: a device with a valid one comes back.
    KeyChanged,
}

impl CloseReason {
    /// Returns the code of the close frame. Codes that the standard does not define start at 4000.
    #[must_use]
    pub fn code(self) -> u16 {
        match self {
            CloseReason::GoingAway => 1001,
            CloseReason::Replaced => 4001,
            CloseReason::Removed => 4002,
            CloseReason::KeyChanged => 4003,
        }
    }

    /// Returns the text of the close frame, for the device's log.
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

/// The message with which the other end closed the tunnel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CloseMessage {
    code: u16,
    /// invariant: without control characters
    reason: String,
}

impl CloseMessage {
    /// Returns whether it has this reason.
    #[must_use]
    pub fn is(&self, close_reason: CloseReason) -> bool {
        self.code == close_reason.code()
    }

    fn from_frame(frame: &CloseFrame) -> Self {
        let plain = |c: char| if c.is_control() { ' ' } else { c };
        CloseMessage {
            code: frame.code.into(),
            // The protocol limits it to 123 bytes.
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
            self.last_word = Some(CloseMessage::from_frame(frame));
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
            // An error means that it is closed already, which the line below reports.
            let _ = self.stream.start_send_unpin(Message::Close(Some(frame)));
        }
        self.stream.poll_close_unpin(cx)
    }
}

/// The socket, shared by the pipe and the closer; one of them uses it at a time.
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
        self.0.lock()
    }
}

/// Closes a tunnel with a reason. It comes from [`crate::over`], and must be kept for as long as the connection is
/// needed, because it keeps the connection open.
pub struct TunnelCloser<S>(pub(crate) SharedSocket<S>);

impl<S: AsyncRead + AsyncWrite + Unpin> TunnelCloser<S> {
    /// Sets the reason with which the connection is closed, once something closes it.
    pub fn set_reason(&self, close_reason: CloseReason) {
        self.0.lock().reason_to_send = Some(close_reason);
    }

    /// Closes the connection with its reason when the [`crate::Pipe`] is no longer used, and waits until the other end
    /// has closed it as well. There is no time limit: the caller sets one.
    pub async fn close(self) {
        if poll_fn(|cx| self.0.lock().poll_close(cx)).await.is_ok() {
            while self.reads().await {}
        }
    }

    /// Waits for the other end's close message when the [`crate::Pipe`] is no longer used, and returns it. There is no
    /// time limit: the caller sets one.
    pub async fn close_message(self) -> Option<CloseMessage> {
        loop {
            let message = self.0.lock().last_word.take();
            if message.is_some() || !self.reads().await {
                return message;
            }
        }
    }

    /// Reads and discards one message; returns false if there are no more.
    async fn reads(&self) -> bool {
        let message = poll_fn(|cx| self.0.lock().poll_message(cx)).await;
        matches!(message, Some(Ok(_)))
    }
}
