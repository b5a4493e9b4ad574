//! The cloud's end: asks the device.

use std::future::Future;
use std::time::Duration;

use hyper::client::conn::http2::{self, SendRequest};
use hyper::rt::Executor;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::TaskTracker;

use crate::bounds::{CONNECTION_WINDOW, HEAD, PING_EVERY, PONG_WITHIN, SEND_BUFFER, STREAM_WINDOW};

/// How the end that asks finds out that the other one is gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pings {
    /// Between two pings.
    pub every: Duration,
    /// How long one may stay unanswered before the other end counts as gone.
    pub within: Duration,
}

impl Default for Pings {
    /// As the device's end has it.
    fn default() -> Self {
        Pings {
            every: PING_EVERY,
            within: PONG_WITHIN,
        }
    }
}

/// Sends requests to one device; clones share its tunnel. A request needs a URI with scheme and authority, as
/// HTTP/2 has it, whatever they are. Dropping an answer's body tells the device that nobody reads it.
pub type RequestSender<B> = SendRequest<B>;

/// The tunnel of one device, which works for as long as this is kept. Dropping it cuts off what is under way.
pub struct Connection<P, B>
where
    P: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    B: http_body::Body + Unpin + Send + 'static,
    B::Data: Send,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    /// Missing once it has ended.
    client: Option<http2::Connection<TokioIo<P>, B, Tasks>>,
    tasks: Tasks,
    cut: DropGuard,
}

impl<P, B> Connection<P, B>
where
    P: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    B: http_body::Body + Unpin + Send + 'static,
    B::Data: Send,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    /// Waits until it has ended: with the connection, or when the last [`RequestSender`] is dropped and nothing is under
    /// way, which the device is told (GOAWAY). Dropping the future ends nothing, and it may be called again.
    ///
    /// # Errors
    /// How it broke, where it did.
    pub async fn ended(&mut self) -> hyper::Result<()> {
        let ended = match &mut self.client {
            Some(client) => client.await,
            None => Ok(()),
        };
        self.client = None;
        self.tasks.running.close();
        self.tasks.running.wait().await;
        ended
    }

    /// Cuts off what is under way. When this returns, nothing uses the pipe any more.
    pub async fn cut(self) {
        drop(self.client);
        drop(self.cut);
        self.tasks.running.close();
        self.tasks.running.wait().await;
    }
}

/// Runs what a connection consists of, until that is cut.
#[derive(Clone)]
struct Tasks {
    running: TaskTracker,
    cut: CancellationToken,
}

impl<F> Executor<F> for Tasks
where
    F: Future + Send + 'static,
    F::Output: Send,
{
    fn execute(&self, task: F) {
        let cut = self.cut.clone();
        self.running.spawn(cut.run_until_cancelled_owned(task));
    }
}

/// Begins to speak to the device at the other end of `pipe`. Whoever calls it keeps the [`Connection`], and waits
/// for its end.
///
/// # Errors
/// Where the connection breaks at once.
pub async fn connect<P, B>(
    pipe: P,
    pings: Pings,
) -> hyper::Result<(RequestSender<B>, Connection<P, B>)>
where
    P: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    B: http_body::Body + Unpin + Send + 'static,
    B::Data: Send,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let tasks = Tasks {
        running: TaskTracker::new(),
        cut: CancellationToken::new(),
    };
    let cut = tasks.cut.clone().drop_guard();
    let (ask, client) = http2::Builder::new(tasks.clone())
        .timer(TokioTimer::new())
        .adaptive_window(false)
        .initial_stream_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW)
        .max_header_list_size(HEAD)
        .max_send_buf_size(SEND_BUFFER)
        .keep_alive_interval(pings.every)
        .keep_alive_timeout(pings.within)
        .keep_alive_while_idle(true)
        .handshake(TokioIo::new(pipe))
        .await?;
    let connection = Connection {
        client: Some(client),
        tasks,
        cut,
    };
    Ok((ask, connection))
}
