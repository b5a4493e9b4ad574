//! Update locks, for whoever is not the loop.

use model::{AppId, LockRefusal, LockRequest, ServiceName, UpdateLock, error_chain};

use super::{Reconciler, stopping};
use crate::messages::Command;
use crate::{AllLocks, LockError, LockPolicy};

impl Reconciler {
    /// Takes the update locks of all apps that have containers, or none: for what may disturb any of them.
    /// Waits up to 10 s for other operations of this supervisor, and not for a user. `force` overrides
    /// users' locks, and so does `SUPERVISOR_OVERRIDE_LOCK` of the target.
    ///
    /// # Errors
    /// [`LockError`]; then none is held.
    pub async fn lock_all_apps(&self, force: bool) -> Result<AllLocks, LockError> {
        // Once the loop has ended nothing is known but the folders.
        let (apps, override_locks) = match self.ask(Command::Locking).await {
            Ok(locking) => (locking.apps, locking.override_locks),
            Err(_) => (None, false),
        };
        let policy = LockPolicy::forced(force || override_locks);
        self.inner.context.locks.take_all(apps, policy).await
    }

    /// Who holds which update lock now.
    ///
    /// # Errors
    /// Where the lock folders cannot be read.
    pub async fn update_locks(&self) -> Result<Vec<UpdateLock>, String> {
        match self.inner.context.locks.blocking(|it| it.list()).await {
            Some(locks) => locks.map_err(|error| error_chain(&error)),
            None => Err(stopping().to_string()),
        }
    }

    /// Takes the update lock of a service for it, or renews the one that was taken so. It ends by itself
    /// when its time is over.
    ///
    /// # Errors
    /// [`LockRefusal`]; a lock that was held before is held still.
    pub async fn lease_lock(&self, request: LockRequest) -> Result<UpdateLock, LockRefusal> {
        let locks = &self.inner.context.locks;
        let leased = locks.blocking(move |locks| locks.lease(&request)).await;
        leased.unwrap_or_else(|| Err(LockRefusal::Failed(stopping().to_string())))
    }

    /// Gives back what [`Self::lease_lock`] took.
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
