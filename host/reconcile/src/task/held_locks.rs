//! The update locks that the loop holds, and the locks of users that it waits for.

mod begun_updates;

use std::collections::BTreeMap;
use std::sync::Arc;

use model::AppUuid;
use tokio::task::AbortHandle;

use begun_updates::BegunUpdates;

use super::lock_wait::LockWaits;
use crate::UpdateLocks;

#[derive(Debug, Default)]
pub(super) struct HeldLocks {
    pub guards: BTreeMap<AppUuid, Vec<Arc<UpdateLocks>>>,
    /// Tasks that wait for the removal of a user's lock.
    pub watches: BTreeMap<AppUuid, AbortHandle>,
    pub waits: LockWaits,
    pub updates: BegunUpdates,
}

impl HeldLocks {
    pub(super) fn for_app(&self, app: &AppUuid) -> Vec<Arc<UpdateLocks>> {
        self.guards.get(app).cloned().unwrap_or_default()
    }

    /// Waits for one lock of an app at a time: the last that blocked it.
    pub(super) fn watch(&mut self, app: AppUuid, watch: AbortHandle) {
        if let Some(before) = self.watches.insert(app, watch) {
            before.abort();
        }
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
