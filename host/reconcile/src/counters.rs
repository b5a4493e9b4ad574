//! Counters of the loop, for monitoring of many devices.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering::Relaxed};

use device_types::{Moment, ReconcilerStats};

use crate::clock::now_ms;

/// The counters behind [`ReconcilerStats`].
#[derive(Debug, Default)]
pub(crate) struct Counters {
    passes: AtomicU64,
    step_failures: AtomicU64,
    /// 0 until the target was reached.
    last_reached_ms: AtomicI64,
    downloads: AtomicU64,
    download_failures: AtomicU64,
}

impl Counters {
    pub(crate) fn pass(&self) {
        self.passes.fetch_add(1, Relaxed);
    }

    pub(crate) fn reached(&self) {
        self.last_reached_ms.store(now_ms(), Relaxed);
    }

    pub(crate) fn step_failed(&self) {
        self.step_failures.fetch_add(1, Relaxed);
    }

    pub(crate) fn download_ended(&self, succeeded: bool) {
        let counter = if succeeded {
            &self.downloads
        } else {
            &self.download_failures
        };
        counter.fetch_add(1, Relaxed);
    }

    pub(crate) fn read(&self) -> ReconcilerStats {
        let reached = self.last_reached_ms.load(Relaxed);
        ReconcilerStats {
            passes: self.passes.load(Relaxed),
            step_failures: self.step_failures.load(Relaxed),
            last_reached: (reached != 0).then_some(Moment(reached)),
            downloads: self.downloads.load(Relaxed),
            download_failures: self.download_failures.load(Relaxed),
            ..ReconcilerStats::default()
        }
    }
}
