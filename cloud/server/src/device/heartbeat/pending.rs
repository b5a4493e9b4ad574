//! Polls that wait to be written.

use std::collections::HashMap;
use std::time::Instant;

use parking_lot::Mutex;
use tokio::sync::Notify;

/// The maximum deadline, in milliseconds: a century, to which the time can still be added.
const FURTHEST: i64 = 100 * 366 * 24 * 3600 * 1000;

/// Unwritten polls, by device.
#[derive(Default)]
pub(crate) struct Heartbeats {
    pending: Mutex<HashMap<i64, PollRecord>>,
    any: Notify,
}

/// What a poll says about a device.
#[derive(Debug, Clone, Copy)]
pub(super) struct PollRecord {
    pub(super) at: Instant,
    /// The time in milliseconds after which the device counts as silent.
    pub(super) silent_after: i64,
    /// The state that the device has: its inputs, in one number (`state/generation.rs`).
    pub(super) generation: i64,
}

impl Heartbeats {
    /// Notes that a device polled, was `given` the state of this generation, and should poll every `interval`
    /// milliseconds.
    pub(crate) fn note(&self, device: i64, interval: i64, generation: i64) {
        let silent_after = (interval / 2).saturating_mul(3);
        let polled = PollRecord {
            at: Instant::now(),
            silent_after,
            generation,
        };
        self.pending.lock().insert(device, polled);
        self.any.notify_one();
    }

    /// Returns when a device has polled since the last call.
    pub(super) async fn added(&self) {
        self.any.notified().await;
    }

    /// Triggers writing (again).
    pub(super) fn wake(&self) {
        self.any.notify_one();
    }

    pub(super) fn take(&self) -> Vec<(i64, PollRecord)> {
        let mut records: Vec<(i64, PollRecord)> = self.pending.lock().drain().collect();
        // Sorted, so that all writers use one order.
        records.sort_unstable_by_key(|(device, _)| *device);
        records
    }

    pub(super) fn put_back(&self, records: &[(i64, PollRecord)]) {
        let mut pending = self.pending.lock();
        for (device, polled) in records {
            pending.entry(*device).or_insert(*polled);
        }
    }
}

impl PollRecord {
    /// Returns in how many milliseconds the device counts as silent.
    pub(super) fn left(&self) -> i64 {
        let since = i64::try_from(self.at.elapsed().as_millis()).unwrap_or(i64::MAX);
        self.silent_after.saturating_sub(since).min(FURTHEST)
    }
}
