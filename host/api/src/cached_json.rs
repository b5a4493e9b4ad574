//! Answers that are drawn from the device's state, written once for each state rather than for each
//! request.

use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use model::DeviceStatus;

use crate::device::Facts;

/// The last answer and what it was drawn from.
#[derive(Default)]
pub(crate) struct CachedJson(Mutex<Option<CacheEntry>>);

struct CacheEntry {
    // Holding both keeps their addresses from being used again, so that comparing pointers is enough.
    status: Arc<DeviceStatus>,
    facts: Arc<Facts>,
    json: Bytes,
}

impl CachedJson {
    /// The answer for this state, drawn by `draw` if the last one was for another.
    pub(crate) fn of(
        &self,
        status: Arc<DeviceStatus>,
        facts: Arc<Facts>,
        draw: impl FnOnce(&DeviceStatus, &Facts) -> Vec<u8>,
    ) -> Bytes {
        // A panic while drawing leaves the last picture as it was.
        let mut last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(picture) = last.as_ref()
            && Arc::ptr_eq(&picture.status, &status)
            && Arc::ptr_eq(&picture.facts, &facts)
        {
            return picture.json.clone();
        }
        let json = Bytes::from(draw(&status, &facts));
        *last = Some(CacheEntry {
            status,
            facts,
            json: json.clone(),
        });
        json
    }
}
