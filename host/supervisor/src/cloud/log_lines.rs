//! The output of services in the form that is sent to the cloud.

use std::sync::Arc;

use cloud_link::{LogLine, LogShipping, LogSource};
use futures::future::BoxFuture;
use futures::stream::BoxStream;
use futures::{FutureExt, StreamExt};
use model::DeviceStatus;
use reconcile::{EffectiveSettings, Reconciler};
use tokio::sync::{Mutex, watch};

/// The lines of this device.
pub(crate) struct LogLines {
    reconciler: Reconciler,
    watches: Mutex<LogPolicyWatches>,
}

/// Signals that logs may be required, or no longer required: local mode is part of the status.
struct LogPolicyWatches {
    settings: watch::Receiver<Arc<EffectiveSettings>>,
    status: watch::Receiver<Arc<DeviceStatus>>,
    /// The policy at the last check.
    shipping: LogShipping,
}

impl LogLines {
    pub(crate) fn new(reconciler: &Reconciler) -> Self {
        LogLines {
            reconciler: reconciler.clone(),
            watches: Mutex::new(LogPolicyWatches {
                settings: reconciler.effective_settings(),
                status: reconciler.watch(),
                shipping: shipping(reconciler),
            }),
        }
    }
}

impl LogSource for LogLines {
    fn lines(&self) -> BoxStream<'static, LogLine> {
        let lines = self.reconciler.logs_for_the_cloud();
        lines
            .map(|line| LogLine {
                message: line.message.clone(),
                timestamp_ms: line.timestamp.unwrap_or_default(),
                service: line.service_id.map(|id| id.0),
                is_stderr: line.is_stderr,
            })
            .boxed()
    }

    fn shipping(&self) -> LogShipping {
        shipping(&self.reconciler)
    }

    fn forget(&self) {
        self.reconciler.forget_logs_for_the_cloud();
    }

    fn changed(&self) -> BoxFuture<'_, ()> {
        async {
            let mut watches = self.watches.lock().await;
            loop {
                let now = shipping(&self.reconciler);
                if now != watches.shipping {
                    watches.shipping = now;
                    return;
                }
                let LogPolicyWatches {
                    settings, status, ..
                } = &mut *watches;
                let outcome = tokio::select! {
                    changed = settings.changed() => changed,
                    changed = status.changed() => changed,
                };
                if outcome.is_err() {
                    return std::future::pending().await;
                }
            }
        }
        .boxed()
    }
}

fn shipping(reconciler: &Reconciler) -> LogShipping {
    if reconciler.local_mode() {
        LogShipping::NotNow
    } else if reconciler.effective_settings().borrow().settings.log_upload {
        LogShipping::Yes
    } else {
        LogShipping::No
    }
}
