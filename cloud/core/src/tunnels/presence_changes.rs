//! Devices that connected or disconnected, until that is in the database.

use std::collections::HashSet;

use parking_lot::Mutex;
use tokio::sync::Notify;

/// Devices whose rows may be outdated.
#[derive(Default)]
pub(super) struct PresenceChanges {
    pub(super) devices: Mutex<HashSet<i64>>,
    pub(super) wake: Notify,
}

impl PresenceChanges {
    /// Notes that a device connected or disconnected.
    pub(super) fn changed(&self, device: i64) {
        self.devices.lock().insert(device);
        self.wake.notify_one();
    }

    pub(super) fn all_changed(&self, devices: impl IntoIterator<Item = i64>) {
        self.devices.lock().extend(devices);
        self.wake.notify_one();
    }
}
