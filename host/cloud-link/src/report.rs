//! Tells the cloud how the device is (docs/spec/device.md#report): what differs from what it has taken last, at most
//! every 10 s, and measures or fields of plugins alone at most every 5 min.
//!
//! What the cloud has taken is kept in a file of the supervisor's folder in `/run`: a supervisor that is started again tells
//! nothing twice, a device that was rebooted tells all. While the cloud does not take it the state is drawn
//! anew for each try, so that nothing piles up.

mod cache;
mod changes;
mod pace;

use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use model::error_chain;
use secure_fs::SecureFile;
use serde_json::{Map, Value, json};
use tokio::time::{Instant, sleep_until, timeout};
use tokio_util::sync::CancellationToken;

use crate::poll::Device;
use crate::queue::Sink;
use crate::retry::{self, Backoff};
use cache::ReportCache;
use pace::Pace;

pub use changes::{METRICS, PLUGIN_FIELDS};

/// Between two reports.
const GAP: Duration = Duration::from_secs(10);
/// How often is looked whether something has changed that nobody tells of: addresses, keys, measures, fields of plugins.
const LOOK: Duration = Duration::from_secs(10);

/// The state of the device, as the cloud is told it. The binary implements it.
pub trait StateSource: Send + Sync + 'static {
    /// The fields of docs/spec/device.md#report-fields, all that are known.
    fn report(&self) -> BoxFuture<'_, Map<String, Value>>;

    /// Returns when the state may have changed since the last time; dropping it loses nothing.
    fn changed(&self) -> BoxFuture<'_, ()>;
}

/// Begins to report once `ready` is cancelled, until `stop`. Runs in a tokio runtime. `cache` is where to keep
/// what the cloud has taken, if not in memory alone; it is the device's whose `sink` it is.
pub fn report(
    sink: Arc<dyn Sink>,
    reporting: Arc<dyn StateSource>,
    device: Arc<dyn Device>,
    cache: Option<SecureFile>,
    ready: CancellationToken,
    stop: CancellationToken,
) {
    tokio::spawn(stop.run_until_cancelled_owned(async move {
        ready.cancelled().await;
        let accepted = ReportCache::read(cache, sink.uuid().as_str()).await;
        let reporter = Reporter {
            sink,
            reporting,
            device,
        };
        reporter.run(accepted).await;
    }));
}

struct Reporter {
    sink: Arc<dyn Sink>,
    reporting: Arc<dyn StateSource>,
    device: Arc<dyn Device>,
}

impl Reporter {
    async fn run(&self, mut accepted: ReportCache) {
        let mut backoff = Backoff::new(retry::BASE);
        let mut next = Instant::now();
        let mut pace = Pace::new(next);
        let mut refused_fields = None;
        loop {
            sleep_until(next).await;
            let mut report = self.reporting.report().await;
            if refused_fields.is_some() && report.get(PLUGIN_FIELDS) == refused_fields.as_ref() {
                report.remove(PLUGIN_FIELDS);
            }
            let changes = changes::between(accepted.fields(), &report);
            if !pace.allows(accepted.fields(), &changes, Instant::now()) {
                let _ = timeout(LOOK, self.reporting.changed()).await;
                continue;
            }
            let settings = self.device.settings();
            let body = json!({ self.sink.uuid().as_str(): changes });
            let sent = self
                .sink
                .patch("state", &body, settings.request_timeout)
                .await;
            let now = Instant::now();
            match sent {
                Ok(()) => {
                    backoff.reset();
                    next = now + GAP;
                    pace.spend(&changes, now);
                    accepted.take(changes).await;
                }
                // What plugins say is not to keep the cloud from knowing the rest: that is sent without it.
                Err(error) if error.is_final() && changes.contains_key(PLUGIN_FIELDS) => {
                    tracing::warn!(
                        "the cloud refuses a report with fields of plugins, so they are left out until they change: {}",
                        error_chain(&error)
                    );
                    refused_fields = changes.get(PLUGIN_FIELDS).cloned();
                    next = now + GAP;
                }
                Err(error) => {
                    let wait = backoff.next(settings.interval, error.retry_after());
                    tracing::warn!(
                        "failed to report the device's state to the cloud, trying again in {wait:.0?}: {}",
                        error_chain(&error)
                    );
                    next = now + wait;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
