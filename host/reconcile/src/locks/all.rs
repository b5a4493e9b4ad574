//! The locks of all apps, for operations that concern no particular app but could disturb any: the settings of the
//! host's network, a reboot (docs/spec/device.md#locks-who).

use std::collections::BTreeSet;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use model::{AppId, ServiceName};
use tokio::sync::OwnedMutexGuard;
use tokio::time::Instant;

use super::{LockError, LockPolicy, Locks, UpdateLocks};

/// How long one operation waits for another (docs/spec/device.md#locks-wait).
const PATIENCE: Duration = Duration::from_secs(10);

/// Proof that the update locks of all apps are held; dropping it releases them.
#[derive(Debug)]
#[must_use = "the locks are released as soon as this is dropped"]
pub struct AllLocks {
    // Released in this order: an operation that waits for the last one finds the others free.
    _apps: Vec<UpdateLocks>,
    _one_at_a_time: OwnedMutexGuard<()>,
}

/// The state of the loop that determines which locks are taken.
#[derive(Debug)]
pub(crate) struct LockSubjects {
    /// The apps that have containers; `None` until the engines have answered.
    pub apps: Option<BTreeSet<AppId>>,
    /// Whether every lock is overridden (docs/spec/device.md#locks-override).
    pub override_locks: bool,
}

impl Locks {
    /// Takes the locks of every service folder of each of `apps` (of all apps that have folders, if it is `None`), or
    /// none of them. Waits for other operations of this supervisor, up to 10 s in total.
    ///
    /// # Errors
    /// [`LockError`].
    pub(crate) async fn take_all(
        &self,
        apps: Option<BTreeSet<AppId>>,
        policy: LockPolicy,
    ) -> Result<AllLocks, LockError> {
        let deadline = Instant::now() + PATIENCE;
        let one = Arc::clone(&self.one_at_a_time).lock_owned();
        let one = tokio::time::timeout_at(deadline, one).await;
        let one = one.map_err(|_| LockError::AllBusy)?;
        let on_disk = self.blocking(move |locks| locks.services_on_disk(apps.as_ref()));
        let on_disk = on_disk.await.ok_or_else(|| self.stopping())??;
        let mut guards = Vec::new();
        for (app, services) in on_disk {
            guards.push(self.take_until(app, services, policy, deadline).await?);
        }
        Ok(AllLocks {
            _apps: guards,
            _one_at_a_time: one,
        })
    }

    /// Like [`Locks::take`], but waits if another operation of this process holds a lock.
    async fn take_until(
        &self,
        app: AppId,
        services: BTreeSet<ServiceName>,
        policy: LockPolicy,
        deadline: Instant,
    ) -> Result<UpdateLocks, LockError> {
        loop {
            // Before the attempt, so that a release between the two is not missed.
            let released = self.held.released.notified();
            let services = services.clone();
            let taking = self.blocking(move |locks| locks.take(app, &services, policy));
            match taking.await.ok_or_else(|| self.stopping())? {
                Err(busy @ LockError::Busy { .. }) => {
                    let waited = tokio::time::timeout_at(deadline, released).await;
                    waited.map_err(|_| busy)?;
                }
                result => return result,
            }
        }
    }

    fn stopping(&self) -> LockError {
        LockError::Failed {
            path: self.tree.services_path(),
            source: io::Error::other("the supervisor is stopping"),
        }
    }
}
