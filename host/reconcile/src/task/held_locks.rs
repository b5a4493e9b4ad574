//! The update locks that the loop holds, and those of users that it waits for.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use model::AppUuid;
use tokio::task::AbortHandle;

use super::lock_wait::LockWaits;
use crate::UpdateLocks;

#[derive(Debug, Default)]
pub(super) struct HeldLocks {
    guards: BTreeMap<AppUuid, Vec<Arc<UpdateLocks>>>,
    /// Tasks that wait until a user's lock is gone.
    watches: BTreeMap<AppUuid, AbortHandle>,
    pub waits: LockWaits,
}

impl HeldLocks {
    pub(super) fn add(&mut self, app: AppUuid, guard: Arc<UpdateLocks>) {
        self.guards.entry(app).or_default().push(guard);
    }

    pub(super) fn of(&self, app: &AppUuid) -> Vec<Arc<UpdateLocks>> {
        self.guards.get(app).cloned().unwrap_or_default()
    }

    pub(super) fn contains(&self, app: &AppUuid) -> bool {
        self.guards.contains_key(app)
    }

    pub(super) fn apps(&self) -> BTreeSet<AppUuid> {
        self.guards.keys().cloned().collect()
    }

    /// Lets the locks of an app go once no step holds them any more.
    pub(super) fn release(&mut self, app: &AppUuid) {
        self.guards.remove(app);
    }

    pub(super) fn release_all(&mut self) {
        self.guards.clear();
    }

    /// Waits for one lock of an app at a time: that which was in the way last.
    pub(super) fn watch(&mut self, app: AppUuid, watch: AbortHandle) {
        if let Some(before) = self.watches.insert(app, watch) {
            before.abort();
        }
    }

    pub(super) fn end_watch(&mut self, app: &AppUuid) {
        self.watches.remove(app);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn an_app_waits_for_the_lock_that_was_in_the_way_last() {
        let app: AppUuid = "0123456789abcdef0123456789abcdef".parse().unwrap();
        let mut locks = HeldLocks::default();
        let first = tokio::spawn(std::future::pending::<()>());
        let second = tokio::spawn(std::future::pending::<()>());
        locks.watch(app.clone(), first.abort_handle());
        locks.watch(app, second.abort_handle());
        // With the clock paused, a task that is not aborted runs into this at once.
        let first = tokio::time::timeout(Duration::from_secs(1), first).await;
        assert!(first.is_ok_and(|ended| ended.is_err_and(|error| error.is_cancelled())));
        assert!(!second.is_finished());
    }
}
