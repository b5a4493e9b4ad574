//! The time of day, for what the cloud stores. Waiting uses the runtime's clock, which tests can pause.

use std::time::SystemTime;

/// Returns the milliseconds since the epoch; 0 if the clock is set to a time before it.
pub(crate) fn now_ms() -> i64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    since.map_or(0, |since| {
        i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
    })
}
