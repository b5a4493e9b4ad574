//! The moments at which a kill may occur, reported to tests. A released program is built without the feature `moments`
//! and does not contain them.

#[cfg(feature = "moments")]
use std::sync::Arc;

/// The listener for moments; none by default.
#[derive(Clone, Default)]
pub struct Moments {
    #[cfg(feature = "moments")]
    listener: Option<Arc<dyn Fn(&'static str) + Send + Sync>>,
}

/// The moments, and what has just happened at each.
///
/// | moment | |
/// |---|---|
/// | `in-pull` | the first progress of a pull |
/// | `after-create` | a container was created, and is not started yet |
/// | `lock-taken` | the update locks of an app were taken |
/// | `killed-not-started` | an old container was removed, and the new one is not made yet |
/// | `renamed` | a container was renamed |
/// | `before-store-write` | something is about to be written into the store |
/// | `after-store-write` | it was, and nobody has been told yet |
#[cfg(feature = "moments")]
pub(crate) const MOMENTS: &[&str] = &[
    "in-pull",
    "after-create",
    "lock-taken",
    "killed-not-started",
    "renamed",
    store::BEFORE_WRITE,
    store::AFTER_WRITE,
];

impl Moments {
    /// Calls `listener` at each moment, on the thread on which it occurs: that thread continues only after the listener
    /// has returned.
    #[cfg(feature = "moments")]
    #[must_use]
    pub fn with_listener(listener: impl Fn(&'static str) + Send + Sync + 'static) -> Moments {
        Moments {
            listener: Some(Arc::new(listener)),
        }
    }

    /// Reports the writes of `store` as well.
    #[cfg(feature = "moments")]
    pub(crate) fn follow(&self, store: &store::Store) {
        store.set_write_listener(self.listener.clone());
    }

    #[cfg(not(feature = "moments"))]
    #[inline]
    pub(crate) fn follow(&self, _store: &store::Store) {}

    #[cfg(feature = "moments")]
    pub(crate) fn reached(&self, moment: &'static str) {
        if let Some(listener) = &self.listener {
            listener(moment);
        }
    }

    #[cfg(not(feature = "moments"))]
    #[inline]
    pub(crate) fn reached(&self, _moment: &'static str) {}
}
