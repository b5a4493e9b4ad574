//! The devices whose connection came or went, until the database knows.

use std::collections::HashSet;

use parking_lot::Mutex;
use tokio::sync::Notify;

/// Devices whose rows may not be true any more.
#[derive(Default)]
pub(super) struct PresenceChanges {
    pub(super) devices: Mutex<HashSet<i64>>,
    pub(super) wake: Notify,
}

impl PresenceChanges {
    /// A device came or went.
    pub(super) fn changed(&self, device: i64) {
        self.devices.lock().insert(device);
        self.wake.notify_one();
    }

    pub(super) fn all_changed(&self, devices: impl IntoIterator<Item = i64>) {
        self.devices.lock().extend(devices);
        self.wake.notify_one();
    }
}
