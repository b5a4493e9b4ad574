//! Brings what services print to the cloud (docs/spec/device.md#log-upload): one long request while the cloud takes
//! it, and the disk while it does not.
//!
//! ```text
//! lines ─► batches of 100 ms ─┬─ the cloud listens ──► one request, packed, flushed with each batch
//!                             └─ it does not ────────► segments on the disk, the oldest dropped
//!                                                      └─ it is back ─► a request a segment, in order
//! ```
//!
//! A segment is forgotten when the cloud has answered for it. Of the long request, which is never answered while
//! it lasts, the last half minute is kept: where the connection breaks, it goes to the disk and comes again.

mod line;
mod live;
mod spool;
mod upload;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::future::BoxFuture;
use futures::stream::BoxStream;
use futures::{FutureExt, StreamExt};
use reqwest::Body;
use tokio_util::sync::CancellationToken;

use crate::client::{Client, CloudError};
use spool::Spool;
use upload::Upload;

pub use line::LogLine;

/// How long the request may have nothing to say.
const IDLE: Duration = Duration::from_secs(60);
/// What waits on the disk at most, in bytes.
const SPOOL: u64 = 8 << 20;

/// Whether logs go to the cloud.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogShipping {
    /// They do.
    Yes,
    /// Not now; what waits stays.
    NotNow,
    /// Nobody wants them, nor those that wait.
    No,
}

/// Where lines come from. The binary implements it over the reconciler.
pub trait LogSource: Send + Sync + 'static {
    /// What is printed from now on.
    fn lines(&self) -> BoxStream<'static, LogLine>;

    /// Whether it is wanted.
    fn wanted(&self) -> LogShipping;

    /// Nobody wants what was printed so far.
    fn forget(&self);

    /// Returns when that may have changed since it was asked.
    fn changed(&self) -> BoxFuture<'_, ()>;
}

/// Where lines go. [`Client`] is the one; tests have others.
pub trait LogSink: Send + Sync + 'static {
    /// One request with lines for as long as `body` lasts; NDJSON, packed.
    fn stream(&self, body: BoxStream<'static, Bytes>)
    -> BoxFuture<'static, Result<(), CloudError>>;

    /// One request with these lines, packed.
    fn send(&self, packed: Vec<u8>) -> BoxFuture<'static, Result<(), CloudError>>;
}

/// A client as where logs go.
pub struct LogEnd(pub Arc<Client>);

impl LogSink for LogEnd {
    fn stream(
        &self,
        body: BoxStream<'static, Bytes>,
    ) -> BoxFuture<'static, Result<(), CloudError>> {
        let client = Arc::clone(&self.0);
        let body = Body::wrap_stream(body.map(Ok::<_, std::convert::Infallible>));
        async move { client.send_logs(body, None).await }.boxed()
    }

    fn send(&self, packed: Vec<u8>) -> BoxFuture<'static, Result<(), CloudError>> {
        let client = Arc::clone(&self.0);
        async move { client.send_logs(packed.into(), Some(IDLE)).await }.boxed()
    }
}

/// Begins to bring lines to the cloud once `ready` is cancelled, until `stop`. Runs in a tokio runtime.
/// `folder` is where lines wait.
pub fn upload_logs(
    sink: Arc<dyn LogSink>,
    source: Arc<dyn LogSource>,
    folder: PathBuf,
    ready: CancellationToken,
    stop: CancellationToken,
) {
    tokio::spawn(async move {
        if stop.run_until_cancelled(ready.cancelled()).await.is_none() {
            return;
        }
        let path = folder.display().to_string();
        let opened = tokio::task::spawn_blocking(move || Spool::open(&folder, SPOOL)).await;
        let spool = match opened {
            Ok(Ok(spool)) => spool,
            Ok(Err(error)) => {
                tracing::error!(%error, path, "logs are not sent to the cloud: their folder cannot be used");
                return;
            }
            Err(_) => return,
        };
        let mut upload = Upload::new(sink, spool);
        loop {
            match source.wanted() {
                LogShipping::Yes => {
                    let lines = source.lines();
                    if upload.run(lines, &*source, &stop).await.is_none() {
                        return;
                    }
                    continue;
                }
                LogShipping::No => {
                    source.forget();
                    upload.clear().await;
                }
                LogShipping::NotNow => {}
            }
            if stop.run_until_cancelled(source.changed()).await.is_none() {
                return;
            }
        }
    });
}

#[cfg(test)]
mod tests;
