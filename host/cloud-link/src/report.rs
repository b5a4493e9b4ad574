//! Reports the device's state to the cloud (docs/spec/device.md#report): the differences from the last accepted report,
//! at most every 10 s; if only measures or fields of plugins changed, at most every 5 min.
//!
//! The accepted state is kept in a file of the supervisor's folder in `/run`: after a restart of the supervisor nothing
//! is reported twice, after a reboot everything is reported. While the cloud does not accept reports, each attempt
//! sends the current state, so nothing piles up.

mod cache;
mod changes;
mod pace;

use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use model::{Backoff, error_chain};
use secure_fs::SecureFile;
use serde_json::{Map, Value, json};
use tokio::time::{Instant, sleep_until, timeout};
use tokio_util::sync::CancellationToken;

use crate::poll::Device;
use crate::queue::Sink;
use crate::retry;
use cache::ReportCache;
use pace::Pace;

pub use changes::{METRICS, PLUGIN_FIELDS};

/// The pause between two reports.
const GAP: Duration = Duration::from_secs(10);
/// How often values are checked whose changes are not signalled: addresses, keys, measures, fields of plugins.
const LOOK: Duration = Duration::from_secs(10);

/// The state of the device, as reported to the cloud. The binary implements it.
pub trait StateSource: Send + Sync + 'static {
    /// Returns all known fields of docs/spec/device.md#report-fields.
    fn report(&self) -> BoxFuture<'_, Map<String, Value>>;

    /// Returns when the state may have changed since the last time; dropping it loses nothing.
    fn changed(&self) -> BoxFuture<'_, ()>;
}

/// Begins to report once `ready` is cancelled, until `stop`. Runs in a tokio runtime. `cache` is the file for the
/// accepted state, which is otherwise only in memory; it belongs to the device of `sink`.
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
                // Refused fields of plugins must not keep the rest from the cloud: that is sent without them.
                Err(error) if error.is_final() && changes.contains_key(PLUGIN_FIELDS) => {
                    tracing::warn!(
                        "the cloud refuses a report with fields of plugins, so they are left out until they change: {}",
                        error_chain(&error)
                    );
                    refused_fields = changes.get(PLUGIN_FIELDS).cloned();
                    next = now + GAP;
                }
                Err(error) => {
                    let wait =
                        retry::after_failure(&mut backoff, settings.interval, error.retry_after());
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
