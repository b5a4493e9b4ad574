//! Waiting. Needs no capability.

use std::time::Duration;

use crate::bindings::capabilities::platform::supervisor::timer as wit;

/// Returns after `duration` (in whole milliseconds, at most 49 days). The time counts towards the
/// plugin's wall-time limit, but not towards its CPU limit.
pub async fn sleep(duration: Duration) {
    wit::sleep(u32::try_from(duration.as_millis()).unwrap_or(u32::MAX)).await;
}
