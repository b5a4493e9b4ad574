//! The progress of pulls. Engines report it from their own threads, so it is kept separate from the loop's state.

use std::collections::BTreeMap;

use model::ImageRef;
use parking_lot::Mutex;
use tokio::sync::Notify;

/// The percentage of each pull in flight.
#[derive(Debug, Default)]
pub(crate) struct Progress {
    percent: Mutex<BTreeMap<ImageRef, u8>>,
    /// Notified of each change.
    pub changed: Notify,
}

impl Progress {
    pub(crate) fn set(&self, image: &ImageRef, percent: u8) {
        let mut pulls = self.percent.lock();
        // Only whole percentages wake the loop: at most a hundred times per pull.
        if pulls.insert(image.clone(), percent) != Some(percent) {
            self.changed.notify_one();
        }
    }

    pub(crate) fn remove(&self, image: &ImageRef) {
        let mut pulls = self.percent.lock();
        pulls.remove(image);
    }

    pub(crate) fn all(&self) -> BTreeMap<ImageRef, u8> {
        let pulls = self.percent.lock();
        pulls.clone()
    }
}
