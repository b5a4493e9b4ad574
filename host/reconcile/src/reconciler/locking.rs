//! Update locks, for everything outside the loop.

use model::{AppId, LockRefusal, LockRequest, ServiceName, UpdateLock, error_chain};

use super::{Reconciler, stopping};
use crate::messages::Command;
use crate::{AllLocks, LockError, LockPolicy};

impl Reconciler {
    /// Takes the update locks of all apps that have containers, or none: for operations that may disturb any of them.
    /// Waits up to 10 s for other operations of this supervisor, but not for users. `force` overrides users' locks, and
    /// so does `SUPERVISOR_OVERRIDE_LOCK` of the target.
    ///
    /// # Errors
    /// Returns [`LockError`]; then no lock is held.
    pub async fn lock_all_apps(&self, force: bool) -> Result<AllLocks, LockError> {
        // Once the loop has ended, only the folders are known.
        let (apps, override_locks) = match self.ask(Command::Locking).await {
            Ok(locking) => (locking.apps, locking.override_locks),
            Err(_) => (None, false),
        };
        let policy = LockPolicy::forced(force || override_locks);
        self.inner.context.locks.take_all(apps, policy).await
    }

    /// Returns the current update locks and their holders.
    ///
    /// # Errors
    /// If the lock folders cannot be read.
    pub async fn update_locks(&self) -> Result<Vec<UpdateLock>, String> {
        match self.inner.context.locks.blocking(|it| it.list()).await {
            Some(locks) => locks.map_err(|error| error_chain(&error)),
            None => Err(stopping().to_string()),
        }
    }

    /// Takes the update lock on behalf of a service, or renews one that was taken in this way. It ends by itself when
    /// it expires.
    ///
    /// # Errors
    /// Returns [`LockRefusal`]; a lock that was held before is still held.
    pub async fn lease_lock(&self, request: LockRequest) -> Result<UpdateLock, LockRefusal> {
        let locks = &self.inner.context.locks;
        let leased = locks.blocking(move |locks| locks.lease(&request)).await;
        leased.unwrap_or_else(|| Err(LockRefusal::Failed(stopping().to_string())))
    }

    /// Releases a lock taken with [`Self::lease_lock`].
    ///
    /// # Errors
    /// [`LockRefusal`].
    pub async fn give_lock_back(
        &self,
        app: AppId,
        service: ServiceName,
    ) -> Result<(), LockRefusal> {
        let locks = &self.inner.context.locks;
        let given_back = locks.blocking(move |locks| locks.give_back(app, &service));
        let given_back = given_back.await;
        given_back.unwrap_or_else(|| Err(LockRefusal::Failed(stopping().to_string())))
    }
}
