//! A cache of target states.

use std::collections::HashMap;

use axum::body::Bytes;
use cloud_core::device::DeviceRef;
use data::RowRight;
use http::HeaderValue;
use parking_lot::Mutex;
use resources::{Action, Branding};

use super::generation::Generations;
use super::rows::Rows;
use crate::etag::etag;

/// Maximum bytes of cached documents.
const MOST_BYTES: usize = 256 << 20;
/// Approximate cost of an entry in addition to its document, in bytes.
const EACH: usize = 512;

/// A cached state.
#[derive(Debug, Clone)]
pub(crate) struct CachedState {
    pub(crate) device: DeviceRef,
    /// The fleets that it depends on.
    pub(crate) depends: Vec<i64>,
    pub(crate) generation: i64,
    /// Whether the document contains values that people may not see.
    pub(crate) has_secrets: bool,
    /// The poll interval of the device, in milliseconds.
    pub(crate) poll: i64,
    pub(crate) tag: HeaderValue,
    /// Accessible only by [`CachedState::document`]: it contains the variables of the device.
    document: Bytes,
}

impl CachedState {
    /// Creates the state of a device from its rows.
    pub(super) fn new(device: DeviceRef, rows: &Rows, branding: &Branding) -> Self {
        let document = rows.document(branding).to_string();
        CachedState {
            device,
            depends: rows.apps.values().map(|app| app.id).collect(),
            generation: rows.fingerprint(),
            has_secrets: rows.has_secrets(),
            poll: rows.poll_interval(branding),
            tag: etag(document.as_bytes()),
            document: document.into(),
        }
    }

    /// Returns the document, for a caller with the right to read this state.
    pub(super) fn document(&self, right: &RowRight) -> Option<Bytes> {
        let may = right.is_to(Action::ReadTargetState, "device", self.device.id);
        may.then(|| self.document.clone())
    }
}

/// Target states, by the device's uuid.
#[derive(Default)]
pub(crate) struct StateCache {
    made: Mutex<CacheEntries>,
    /// Checks whether states are still valid.
    pub(super) generations: Generations,
}

#[derive(Default)]
struct CacheEntries {
    by_uuid: HashMap<String, CachedState>,
    bytes: usize,
}

impl StateCache {
    pub(crate) fn get(&self, uuid: &str) -> Option<CachedState> {
        self.made.lock().by_uuid.get(uuid).cloned()
    }

    pub(crate) fn keep(&self, uuid: &str, remembered: &CachedState) {
        let mut made = self.made.lock();
        made.remove(uuid);
        let bytes = EACH + remembered.document.len();
        if made.bytes + bytes > MOST_BYTES {
            // All devices poll in turn: no entry is more useful than another.
            made.by_uuid.clear();
            made.bytes = 0;
        }
        made.bytes += bytes;
        made.by_uuid.insert(uuid.to_owned(), remembered.clone());
    }

    pub(crate) fn forget(&self, uuid: &str) {
        self.made.lock().remove(uuid);
    }
}

impl CacheEntries {
    fn remove(&mut self, uuid: &str) {
        if let Some(state) = self.by_uuid.remove(uuid) {
            self.bytes -= EACH + state.document.len();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_documents_than_there_is_room_for_make_room() {
        let states = StateCache::default();
        let remembered = CachedState {
            device: DeviceRef { id: 1, actor: 1 },
            depends: Vec::new(),
            generation: 0,
            has_secrets: false,
            poll: 0,
            tag: etag(b""),
            document: Bytes::from(vec![b'x'; 1 << 20]),
        };
        for device in 0..300 {
            states.keep(&device.to_string(), &remembered);
        }
        assert!(states.made.lock().bytes <= MOST_BYTES);
        assert!(states.get("299").is_some(), "the latest one");
        assert!(states.get("0").is_none(), "the first one");
        states.forget("299");
        let left = states.made.lock().by_uuid.len() * (EACH + (1 << 20));
        assert_eq!(states.made.lock().bytes, left);
    }
}
