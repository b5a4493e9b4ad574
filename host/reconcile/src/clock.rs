//! The time of day. Only log lines and the age of what was just made need it: all waiting is done by
//! the runtime's clock, which tests can pause.

/// Milliseconds since the epoch.
pub(crate) fn now_ms() -> i64 {
    jiff::Timestamp::now().as_millisecond()
}
