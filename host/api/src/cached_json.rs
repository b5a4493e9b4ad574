//! Answers computed from data that seldom changes, serialized once per version of it rather than per request.

use std::sync::Arc;

use bytes::Bytes;
use model::DeviceStatus;
use parking_lot::Mutex;

use crate::device::{Device, Facts};

/// The last answer, and the version of its source data.
pub(crate) struct CachedJson<V>(Mutex<Option<(V, Bytes)>>);

impl<V> Default for CachedJson<V> {
    fn default() -> Self {
        CachedJson(Mutex::default())
    }
}

impl<V: PartialEq> CachedJson<V> {
    /// Returns the answer for this version, computed by `draw` if the last one was for another.
    pub(crate) fn get(&self, version: V, draw: impl FnOnce(&V) -> Vec<u8>) -> Bytes {
        // A panic in `draw` leaves the last answer unchanged.
        let mut last = self.0.lock();
        if let Some((drawn, json)) = last.as_ref()
            && *drawn == version
        {
            return json.clone();
        }
        let json = Bytes::from(draw(&version));
        *last = Some((version, json.clone()));
        json
    }
}

/// The device's state. Holding both values keeps their addresses from being reused, so comparing the addresses is
/// enough.
pub(crate) struct StateVersion {
    pub(crate) status: Arc<DeviceStatus>,
    pub(crate) facts: Arc<Facts>,
}

impl StateVersion {
    pub(crate) fn current(device: &dyn Device) -> Self {
        StateVersion {
            status: device.status(),
            facts: device.facts(),
        }
    }
}

impl PartialEq for StateVersion {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.status, &other.status) && Arc::ptr_eq(&self.facts, &other.facts)
    }
}
