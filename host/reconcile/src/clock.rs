//! The time of day. Only log lines and the age of new objects need it: all waiting uses the runtime's clock, which
//! tests can pause.

/// Returns the milliseconds since the epoch.
pub(crate) fn now_ms() -> i64 {
    device_types::Moment::now().0
}
