//! Signals between the collector of images and other parts of a replica.

use std::sync::atomic::{AtomicBool, Ordering};

use data::Effect;
use tokio::sync::Notify;

/// The state of images that wait for deletion, as known to this replica.
#[derive(Default)]
pub(crate) struct GarbageSignal {
    /// Signals that images were deleted just now.
    more: Notify,
    late: AtomicBool,
}

impl GarbageSignal {
    pub(crate) fn invalidate(&self, effects: &[Effect]) {
        let is_gone = |effect: &Effect| matches!(effect, Effect::ImagesGone(_));
        if effects.iter().any(is_gone) {
            self.more.notify_one();
        }
    }

    /// Returns when images were deleted since the last call.
    pub(super) async fn more_arrived(&self) {
        self.more.notified().await;
    }

    /// Records whether images have waited for too long; returns the previous value.
    pub(super) fn set_late(&self, late: bool) -> bool {
        self.late.swap(late, Ordering::Relaxed)
    }

    /// Whether images have waited for too long to be deleted.
    pub(crate) fn is_late(&self) -> bool {
        self.late.load(Ordering::Relaxed)
    }
}
