//! What is done at most once a minute for each device.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

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
        let last = self.0.lock().get(&device).copied();
        last.is_none_or(|last| last.elapsed() >= MINUTE)
    }

    pub(super) fn is_done(&self, device: i64) {
        let mut written = self.0.lock();
        if written.len() >= MOST_REMEMBERED {
            written.retain(|_, last| last.elapsed() < MINUTE);
        }
        written.insert(device, Instant::now());
    }

    pub(crate) fn forget(&self, device: i64) {
        self.0.lock().remove(&device);
    }
}
