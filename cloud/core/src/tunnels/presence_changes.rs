//! The devices whose connection came or went, until the database knows.

use std::collections::HashSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

/// Devices whose rows may not be true any more.
#[derive(Default)]
pub(super) struct PresenceChanges {
    changed: Mutex<HashSet<i64>>,
    pub(super) wake: Notify,
}

impl PresenceChanges {
    pub(super) fn noted(&self) -> MutexGuard<'_, HashSet<i64>> {
        self.changed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A device came or went.
    pub(super) fn changed(&self, device: i64) {
        self.noted().insert(device);
        self.wake.notify_one();
    }

    pub(super) fn all_changed(&self, devices: impl IntoIterator<Item = i64>) {
        self.noted().extend(devices);
        self.wake.notify_one();
    }
}
