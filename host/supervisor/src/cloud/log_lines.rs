//! What services print, as the cloud gets it.

use std::sync::Arc;

use cloud_link::{LogLine, LogSource, Wanted};
use futures::future::BoxFuture;
use futures::stream::BoxStream;
use futures::{FutureExt, StreamExt};
use model::DeviceStatus;
use reconcile::{InForce, Reconciler};
use tokio::sync::{Mutex, watch};

/// The lines of this device.
pub(crate) struct LogLines {
    reconciler: Reconciler,
    seen: Mutex<Seen>,
}

/// What tells that logs may be wanted, or not wanted any more: local mode shows in the status.
struct Seen {
    in_force: watch::Receiver<Arc<InForce>>,
    status: watch::Receiver<Arc<DeviceStatus>>,
    wanted: Wanted,
}

impl LogLines {
    pub(crate) fn new(reconciler: &Reconciler) -> Self {
        LogLines {
            reconciler: reconciler.clone(),
            seen: Mutex::new(Seen {
                in_force: reconciler.in_force(),
                status: reconciler.watch(),
                wanted: wanted(reconciler),
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
                timestamp_ms: line.timestamp_ms,
                service: line.service.as_ref().map(|(_, id)| id.0),
                is_stderr: line.is_stderr,
            })
            .boxed()
    }

    fn wanted(&self) -> Wanted {
        wanted(&self.reconciler)
    }

    fn forget(&self) {
        self.reconciler.forget_logs_for_the_cloud();
    }

    fn changed(&self) -> BoxFuture<'_, ()> {
        async {
            let mut seen = self.seen.lock().await;
            loop {
                let now = wanted(&self.reconciler);
                if now != seen.wanted {
                    seen.wanted = now;
                    return;
                }
                let Seen {
                    in_force, status, ..
                } = &mut *seen;
                let told = tokio::select! {
                    changed = in_force.changed() => changed,
                    changed = status.changed() => changed,
                };
                if told.is_err() {
                    return std::future::pending().await;
                }
            }
        }
        .boxed()
    }
}

fn wanted(reconciler: &Reconciler) -> Wanted {
    if reconciler.local_mode() {
        Wanted::NotNow
    } else if reconciler.in_force().borrow().settings.log_upload {
        Wanted::Yes
    } else {
        Wanted::No
    }
}
