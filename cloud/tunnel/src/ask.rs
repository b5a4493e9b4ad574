//! The cloud's end, which sends requests to the device.

use std::future::Future;
use std::time::Duration;

use hyper::client::conn::http2::{self, SendRequest};
use hyper::rt::Executor;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::TaskTracker;

use crate::bounds::{CONNECTION_WINDOW, HEAD, PING_EVERY, PONG_WITHIN, SEND_BUFFER, STREAM_WINDOW};

/// How the end that sends requests detects that the other one is gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pings {
    /// The time between two pings.
    pub every: Duration,
    /// How long one may stay unanswered before the other end counts as gone.
    pub within: Duration,
}

impl Default for Pings {
    /// The same intervals as the device's end.
    fn default() -> Self {
        Pings {
            every: PING_EVERY,
            within: PONG_WITHIN,
        }
    }
}

/// Sends requests to one device; clones share its tunnel. A request needs a URI with some scheme and authority, as
/// HTTP/2 requires. Dropping an answer's body tells the device that nobody reads it.
pub type RequestSender<B> = SendRequest<B>;

/// The tunnel of one device, which works for as long as this value exists. Dropping it cuts off pending requests.
pub struct Connection<P, B>
where
    P: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    B: http_body::Body + Unpin + Send + 'static,
    B::Data: Send,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    /// `None` once it has ended.
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
    /// Waits until the tunnel has ended: with the connection, or when the last [`RequestSender`] is dropped and no
    /// request is pending, of which the device is informed (GOAWAY). Dropping the future ends nothing, and the method
    /// may be called again.
    ///
    /// # Errors
    /// The cause, if the connection broke.
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

    /// Cuts off pending requests. When this returns, nothing uses the pipe any more.
    pub async fn cut(self) {
        drop(self.client);
        drop(self.cut);
        self.tasks.running.close();
        self.tasks.running.wait().await;
    }
}

/// Runs the tasks of a connection until it is cut.
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

/// Opens an HTTP/2 connection to the device at the other end of `pipe`. The caller keeps the [`Connection`], and waits
/// for its end.
///
/// # Errors
/// The connection breaks at once.
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
