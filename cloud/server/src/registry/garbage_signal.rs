//! What the parts of a replica tell the collector of images, and what it tells them.

use std::sync::atomic::{AtomicBool, Ordering};

use data::Effect;
use tokio::sync::Notify;

/// What this replica knows of the images that wait.
#[derive(Default)]
pub(crate) struct GarbageSignal {
    /// Some were deleted just now.
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

    /// Returns when images were deleted since it was last asked.
    pub(super) async fn more_arrived(&self) {
        self.more.notified().await;
    }

    /// Notes whether images have waited for too long; whether they had before.
    pub(super) fn set_late(&self, late: bool) -> bool {
        self.late.swap(late, Ordering::Relaxed)
    }

    /// Whether images have waited for too long to be deleted.
    pub(crate) fn is_late(&self) -> bool {
        self.late.load(Ordering::Relaxed)
    }
}
