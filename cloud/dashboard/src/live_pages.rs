//! The open pages, and the actions in progress that they started: state that all requests of the dashboard share.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use cloud_core::answer::Refusal;
use parking_lot::Mutex;
use tokio::sync::{AcquireError, Semaphore, SemaphorePermit};

/// The number of pages that are updated concurrently.
pub(super) const AT_A_TIME: usize = 2;
/// The maximum number of open pages of one user.
const MOST: usize = 32;

/// The open pages.
pub(crate) struct LivePages {
    open: Arc<Mutex<HashMap<i64, usize>>>,
    /// Each update takes one permit.
    turns: Semaphore,
    /// The actions that pages have started on devices.
    pub(crate) actions: PendingActions,
}

impl Default for LivePages {
    fn default() -> Self {
        LivePages {
            open: Arc::default(),
            turns: Semaphore::new(AT_A_TIME),
            actions: PendingActions::default(),
        }
    }
}

impl LivePages {
    /// Waits until a page may update itself; others wait until the permit is dropped.
    pub(super) async fn turn(&self) -> Result<SemaphorePermit<'_>, AcquireError> {
        self.turns.acquire().await
    }

    /// Registers another open page of a user.
    ///
    /// # Errors
    /// 429 if the user has too many open.
    pub(super) fn enter(&self, user: i64) -> Result<StreamSlot, Refusal> {
        let mut open = self.open.lock();
        let pages = open.entry(user).or_default();
        if *pages >= MOST {
            return Err(Refusal::TooMany(10));
        }
        *pages += 1;
        Ok(StreamSlot {
            open: self.open.clone(),
            user,
        })
    }
}

/// One open page; dropping the value frees its slot.
pub(super) struct StreamSlot {
    open: Arc<Mutex<HashMap<i64, usize>>>,
    user: i64,
}

impl Drop for StreamSlot {
    fn drop(&mut self) {
        let mut open = self.open.lock();
        if let Some(pages) = open.get_mut(&self.user) {
            *pages -= 1;
            if *pages == 0 {
                open.remove(&self.user);
            }
        }
    }
}

/// The actions in progress on devices.
#[derive(Debug, Clone, Default)]
pub(crate) struct PendingActions(Arc<Mutex<HashSet<String>>>);

impl PendingActions {
    /// Begins an action, unless the same one is in progress.
    pub(super) fn begin(&self, what: String) -> Option<ActionPermit> {
        self.0.lock().insert(what.clone()).then(|| ActionPermit {
            pending: self.clone(),
            what,
        })
    }
}

/// The permit for one action, which is in progress until the value is dropped.
pub(super) struct ActionPermit {
    pending: PendingActions,
    what: String,
}

impl Drop for ActionPermit {
    fn drop(&mut self) {
        self.pending.0.lock().remove(&self.what);
    }
}
