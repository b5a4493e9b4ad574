//! What the loop counts, for whoever watches many devices.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering::Relaxed};

use crate::clock::now_ms;

/// What the loop has counted since its start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Tally {
    /// Comparisons of the device with its target.
    pub laps: u64,
    /// Steps that failed.
    pub step_failures: u64,
    /// When the target was last found reached, in milliseconds since the epoch.
    pub last_reached_ms: Option<i64>,
    /// Images that were downloaded.
    pub downloads: u64,
    /// Downloads that failed.
    pub download_failures: u64,
    /// Images that are downloaded now.
    pub downloads_running: u64,
    /// Services whose update locks are held now.
    pub locks_held: u64,
}

/// The counters behind it.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    laps: AtomicU64,
    step_failures: AtomicU64,
    /// 0 until it was.
    last_reached_ms: AtomicI64,
    downloads: AtomicU64,
    download_failures: AtomicU64,
}

impl Counts {
    pub(crate) fn lap(&self) {
        self.laps.fetch_add(1, Relaxed);
    }

    pub(crate) fn reached(&self) {
        self.last_reached_ms.store(now_ms(), Relaxed);
    }

    pub(crate) fn step_failed(&self) {
        self.step_failures.fetch_add(1, Relaxed);
    }

    pub(crate) fn download_ended(&self, succeeded: bool) {
        let counter = match succeeded {
            true => &self.downloads,
            false => &self.download_failures,
        };
        counter.fetch_add(1, Relaxed);
    }

    pub(crate) fn read(&self) -> Tally {
        let reached = self.last_reached_ms.load(Relaxed);
        Tally {
            laps: self.laps.load(Relaxed),
            step_failures: self.step_failures.load(Relaxed),
            last_reached_ms: (reached != 0).then_some(reached),
            downloads: self.downloads.load(Relaxed),
            download_failures: self.download_failures.load(Relaxed),
            ..Tally::default()
        }
    }
}
