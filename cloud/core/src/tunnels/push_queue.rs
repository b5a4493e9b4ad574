//! The devices that have to be notified of changes, each once.

use std::collections::{HashSet, VecDeque};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::Instant;

/// After the start of a replica, its devices reconnect within this time, if at all.
const RETURN: Duration = Duration::from_secs(300);

/// The devices to notify.
#[derive(Default)]
pub(super) struct PushQueue {
    pub(super) queue: Mutex<PushTurns>,
    pub(super) wake: Notify,
}

/// The devices that existed when this replica started.
struct ReturningDevices {
    /// The highest number among them.
    newest: i64,
    /// When they are no longer notified unconditionally.
    until: Instant,
    back: HashSet<i64>,
}

impl ReturningDevices {
    /// Whether the device is one of them, and connects for the first time.
    fn is_back(&mut self, device: i64) -> bool {
        device <= self.newest && Instant::now() < self.until && self.back.insert(device)
    }
}

#[derive(Default)]
pub(super) struct PushTurns {
    devices: DeviceQueue,
    pub(super) fleets: HashSet<i64>,
    pub(super) of_fleets: DeviceQueue,
    /// Devices that have connected, and whose current state is not known yet.
    pub(super) arrived: HashSet<i64>,
    of_before: Option<ReturningDevices>,
}

/// Devices in the order of their turns, each once.
#[derive(Default)]
pub(super) struct DeviceQueue {
    order: VecDeque<i64>,
    waiting: HashSet<i64>,
}

impl DeviceQueue {
    pub(super) fn add(&mut self, device: i64) {
        if self.waiting.insert(device) {
            self.order.push_back(device);
        }
    }

    fn next(&mut self) -> Option<i64> {
        loop {
            let Some(device) = self.order.pop_front() else {
                // A fleet may have had a hundred thousand devices.
                *self = DeviceQueue::default();
                return None;
            };
            if self.waiting.remove(&device) {
                return Some(device);
            }
        }
    }

    fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }
}

impl PushTurns {
    pub(super) fn next(&mut self) -> Option<i64> {
        if let Some(device) = self.devices.next() {
            self.of_fleets.waiting.remove(&device);
            return Some(device);
        }
        self.of_fleets.next()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.devices.is_empty()
            && self.of_fleets.is_empty()
            && self.fleets.is_empty()
            && self.arrived.is_empty()
    }
}

impl PushQueue {
    /// Queues devices that have changes.
    pub(super) fn devices(&self, devices: &[i64]) {
        let mut queue = self.queue.lock();
        for device in devices {
            queue.devices.add(*device);
        }
        self.wake.notify_one();
    }

    /// Queues all devices of fleets that have changes.
    pub(super) fn fleets(&self, fleets: &[i64]) {
        self.queue.lock().fleets.extend(fleets);
        self.wake.notify_one();
    }

    /// Queues devices that may have changes, after those that certainly do.
    pub(super) fn perhaps(&self, devices: impl IntoIterator<Item = i64>) {
        let mut queue = self.queue.lock();
        for device in devices {
            queue.of_fleets.add(device);
        }
        self.wake.notify_one();
    }

    /// Records that devices up to this number existed before this replica started.
    pub(super) fn begin(&self, newest: i64) {
        self.queue.lock().of_before = Some(ReturningDevices {
            newest,
            until: Instant::now() + RETURN,
            back: HashSet::new(),
        });
    }

    /// Handles a device that connects (again): it is notified if it missed something.
    pub(super) fn arrived(&self, device: i64) {
        let mut queue = self.queue.lock();
        let before = queue.of_before.as_mut();
        if before.is_some_and(|before| before.is_back(device)) {
            queue.of_fleets.add(device)
        } else {
            queue.arrived.insert(device);
        }
        if queue
            .of_before
            .as_ref()
            .is_some_and(|before| before.until <= Instant::now())
        {
            queue.of_before = None;
        }
        self.wake.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_has_one_turn_and_single_devices_come_before_fleets() {
        let mut queue = PushTurns::default();
        for device in [5, 6, 5] {
            queue.of_fleets.add(device);
        }
        for device in [9, 5] {
            queue.devices.add(device);
        }
        let turns: Vec<i64> = std::iter::from_fn(|| queue.next()).collect();
        assert_eq!(turns, [9, 5, 6]);
        assert!(queue.is_empty());
        queue.of_fleets.add(5);
        assert_eq!(queue.next(), Some(5), "again, after its turn");
    }
}
