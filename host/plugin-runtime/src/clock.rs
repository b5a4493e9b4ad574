//! The time as a number that fits into an atomic.

use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// Returns the nanoseconds since the first call.
pub(crate) fn now() -> u64 {
    static START: OnceLock<Instant> = OnceLock::new();
    nanoseconds(START.get_or_init(Instant::now).elapsed())
}

pub(crate) fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
