//! The moments before and after each write, told to tests. A program that is shipped is built without the
//! feature `moments`, and has nothing of them.

#[cfg(feature = "moments")]
use std::sync::Arc;

#[cfg(feature = "moments")]
use parking_lot::Mutex;

/// Something is about to be written.
#[cfg(feature = "moments")]
pub const BEFORE_WRITE: &str = "before-store-write";
/// It has reached the disk, and whoever wrote it does not know yet.
#[cfg(feature = "moments")]
pub const AFTER_WRITE: &str = "after-store-write";

#[cfg(feature = "moments")]
type Listener = Arc<dyn Fn(&'static str) + Send + Sync>;

/// Who is told.
#[derive(Default)]
pub(crate) struct WriteMoments {
    #[cfg(feature = "moments")]
    listener: Mutex<Option<Listener>>,
}

#[cfg(feature = "moments")]
impl WriteMoments {
    pub(crate) fn before(&self) {
        self.tell(BEFORE_WRITE);
    }

    pub(crate) fn after(&self) {
        self.tell(AFTER_WRITE);
    }

    fn tell(&self, moment: &'static str) {
        let listener = self.listener.lock().clone();
        if let Some(listener) = listener {
            listener(moment);
        }
    }
}

#[cfg(feature = "moments")]
impl crate::Store {
    /// Tells `listener` of [`BEFORE_WRITE`] and [`AFTER_WRITE`] of each write from now on, on the thread that
    /// writes; it takes the place of the one before.
    pub fn tell_of_writes(&self, listener: Option<Listener>) {
        *self.moments().listener.lock() = listener;
    }
}

#[cfg(not(feature = "moments"))]
impl WriteMoments {
    #[inline]
    pub(crate) fn before(&self) {}

    #[inline]
    pub(crate) fn after(&self) {}
}
