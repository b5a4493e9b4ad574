//! The moments before and after each write, reported to tests. A released program is built without the feature
//! `moments`, and contains none of this.

#[cfg(feature = "moments")]
use std::sync::Arc;

#[cfg(feature = "moments")]
use parking_lot::Mutex;

/// Data is about to be written.
#[cfg(feature = "moments")]
pub const BEFORE_WRITE: &str = "before-store-write";
/// The data has reached the disk, but its writer does not know that yet.
#[cfg(feature = "moments")]
pub const AFTER_WRITE: &str = "after-store-write";

#[cfg(feature = "moments")]
pub(crate) type Listener = Arc<dyn Fn(&'static str) + Send + Sync>;

/// The listener for these moments.
#[derive(Default)]
pub(crate) struct WriteMoments {
    #[cfg(feature = "moments")]
    listener: Mutex<Option<Listener>>,
}

#[cfg(feature = "moments")]
impl WriteMoments {
    pub(crate) fn set_listener(&self, listener: Option<Listener>) {
        *self.listener.lock() = listener;
    }

    pub(crate) fn before(&self) {
        self.notify(BEFORE_WRITE);
    }

    pub(crate) fn after(&self) {
        self.notify(AFTER_WRITE);
    }

    fn notify(&self, moment: &'static str) {
        let listener = self.listener.lock().clone();
        if let Some(listener) = listener {
            listener(moment);
        }
    }
}

#[cfg(not(feature = "moments"))]
impl WriteMoments {
    #[inline]
    pub(crate) fn before(&self) {}

    #[inline]
    pub(crate) fn after(&self) {}
}
