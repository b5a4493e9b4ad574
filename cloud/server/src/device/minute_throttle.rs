//! What is done at most once a minute for each device.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How often measurements alone are written, and a device is told that its reports are refused.
const MINUTE: Duration = Duration::from_secs(60);

/// What is done once a minute at most for each device, and when that was last.
#[derive(Default)]
pub(crate) struct MinuteThrottle(Mutex<HashMap<i64, Instant>>);

/// Devices that are remembered.
const MOST_REMEMBERED: usize = 1_000_000;

impl MinuteThrottle {
    /// Whether it may be done again.
    pub(super) fn is_due(&self, device: i64) -> bool {
        let written = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let last = written.get(&device);
        last.is_none_or(|last| last.elapsed() >= MINUTE)
    }

    pub(super) fn is_done(&self, device: i64) {
        let mut written = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if written.len() >= MOST_REMEMBERED {
            written.retain(|_, last| last.elapsed() < MINUTE);
        }
        written.insert(device, Instant::now());
    }

    pub(crate) fn forget(&self, device: i64) {
        let mut written = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        written.remove(&device);
    }
}
