//! Sends the output of services to the cloud (docs/spec/device.md#log-upload): with one long request while the cloud
//! accepts it, and by way of the disk while it does not.
//!
//! ```text
//! lines ─► batches of 100 ms ─┬─ the cloud listens ──► one request, packed, flushed with each batch
//!                             └─ it is away ─────────► segments on the disk, the oldest dropped
//!                                                      └─ it is back ─► one request per segment, in order
//! ```
//!
//! A segment on the disk is deleted when the cloud has answered. The long request is never answered while it lasts, so
//! its last half minute is kept: if the connection breaks, these lines go to the disk and are sent again.

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

/// How long the request may stay open without new lines.
const IDLE: Duration = Duration::from_secs(60);
/// The maximum size of waiting lines on the disk, in bytes.
const SPOOL: u64 = 8 << 20;

/// Whether logs are sent to the cloud.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogShipping {
    /// They are.
    Yes,
    /// Not now; waiting lines are kept.
    NotNow,
    /// They are not wanted, including waiting lines.
    No,
}

/// The source of lines. The binary implements it over the reconciler.
pub trait LogSource: Send + Sync + 'static {
    /// Returns all lines that are printed from now on.
    fn lines(&self) -> BoxStream<'static, LogLine>;

    /// Returns whether they are sent to the cloud.
    fn shipping(&self) -> LogShipping;

    /// Discards the lines that were printed so far.
    fn forget(&self);

    /// Returns when [`LogSource::shipping`] may have changed since its last call.
    fn changed(&self) -> BoxFuture<'_, ()>;
}

/// The receiver of lines. [`Client`] implements it; tests have others.
pub trait LogSink: Send + Sync + 'static {
    /// Sends one request with lines for as long as `body` lasts; NDJSON, packed.
    fn stream(&self, body: BoxStream<'static, Bytes>)
    -> BoxFuture<'static, Result<(), CloudError>>;

    /// Sends one request with these packed lines.
    fn send(&self, packed: Vec<u8>) -> BoxFuture<'static, Result<(), CloudError>>;
}

/// A client as a receiver of lines.
pub struct CloudLogSink(pub Arc<Client>);

impl LogSink for CloudLogSink {
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

/// Begins to send lines to the cloud once `ready` is cancelled, until `stop`. Runs in a tokio runtime. `folder` is the
/// folder of waiting lines.
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
            match source.shipping() {
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
