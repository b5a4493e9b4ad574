//! Counts the CPU time of one instance.
//!
//! Time counts while the instance is being polled, from one check to the next: at each tick of the [`crate::ticker`]
//! that occurs while the guest runs, and at the end of a poll. Waiting happens between polls and costs nothing.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use plugin_protocol::CallUsage;

use crate::clock::{nanoseconds, now};
use crate::ticker::TICK;

/// The most that counts between two checks. A running guest is checked at every tick; if more time has passed, the
/// system had other work to run, and that is not the guest's.
const BETWEEN: Duration = TICK.saturating_mul(2);

/// One instance's CPU time. Its functions are called by one thread at a time.
pub(crate) struct Meter {
    limit: Duration,
    since: AtomicU64,
    used: AtomicU64,
    /// The place where the time is shown, if the caller shows it.
    usage: OnceLock<Arc<CallUsage>>,
}

impl Meter {
    pub(crate) fn new(limit: Duration) -> Meter {
        Meter {
            limit,
            since: AtomicU64::new(now()),
            used: AtomicU64::new(0),
            usage: OnceLock::new(),
        }
    }

    /// Shows the time here from now on, including that of the instance's start, which counts as well.
    pub(crate) fn show_in(&self, usage: &Arc<CallUsage>) {
        usage.record_cpu(self.used.load(Relaxed));
        // An instance serves one call.
        let _ = self.usage.set(Arc::clone(usage));
    }

    /// Marks the beginning of a poll.
    pub(crate) fn begin(&self) {
        self.since.store(now(), Relaxed);
    }

    /// Counts the time since the last check; returns whether the limit is exceeded.
    pub(crate) fn look(&self) -> bool {
        let now = now();
        let passed = now
            .saturating_sub(self.since.swap(now, Relaxed))
            .min(nanoseconds(BETWEEN));
        let used = self.used.load(Relaxed).saturating_add(passed);
        self.used.store(used, Relaxed);
        if let Some(usage) = self.usage.get() {
            usage.record_cpu(used);
        }
        used > nanoseconds(self.limit)
    }

    /// Returns whether the limit is exceeded.
    pub(crate) fn exceeded(&self) -> bool {
        self.used.load(Relaxed) > nanoseconds(self.limit)
    }

    /// Counts from zero again: for a stream, the limit applies to each piece that it delivers.
    pub(crate) fn reset(&self) {
        self.used.store(0, Relaxed);
    }
}
