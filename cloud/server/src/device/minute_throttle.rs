//! Limits an action to once a minute for each device.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

/// The minimum interval between writes that contain only measurements, and between announcements
/// that a device's reports are refused.
const MINUTE: Duration = Duration::from_secs(60);

/// An action that is done at most once a minute for each device, with its last time.
#[derive(Default)]
pub(crate) struct MinuteThrottle(Mutex<HashMap<i64, Instant>>);

/// Maximum number of devices in memory.
const MOST_REMEMBERED: usize = 1_000_000;

impl MinuteThrottle {
    /// Whether the action may be done again.
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
