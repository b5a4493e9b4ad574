//! The locks of an earlier run: which of them continue, and for how long.

use std::time::Duration;

use model::LockRefusal;
use store::LockRecord;

use super::{Lease, Leases, failed, milliseconds};
use crate::clock::now_ms;
use crate::locks::file::LockFile;
use crate::locks::{Locks, boot};

impl Leases {
    /// Returns the remaining time of a lock of an earlier run.
    fn left(&self, record: &LockRecord) -> Duration {
        let left = if self.is_of_this_boot(record) {
            record.expires_in_boot.saturating_sub(boot::uptime_ms())
        } else {
            record.expires_at.saturating_sub(now_ms())
        };
        // Even if the clock was set back, no lock lasts longer than its original duration.
        milliseconds(left.min(record.ttl))
    }

    /// Returns whether a lock was taken in this boot. If the kernel does not provide the boot's id, the lock stays to
    /// be safe.
    fn is_of_this_boot(&self, record: &LockRecord) -> bool {
        record.boot == self.boot
    }
}

impl Locks {
    /// Restores the locks of an earlier run. Called at the start, before any lock is taken.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub(crate) fn recall_leases(&self) -> Result<(), store::StoreError> {
        let mut table = self.leases.lock();
        for record in self.leases.store.lock_records()? {
            let (app, service) = (record.app, record.service.clone());
            match self.recall(record) {
                Ok(Some(lease)) => {
                    table.insert((app, service), lease);
                }
                // If the store cannot be written, this is repeated at the next start.
                Ok(None) => self.leases.forget_record(app, &service),
                // It stays in the store: its folder cannot be used, which keeps the app from updates as well.
                Err(refusal) => {
                    tracing::warn!(
                        %app, %service,
                        "failed to put the update lock of `{service}` back: {refusal}"
                    );
                }
            }
        }
        Ok(())
    }

    /// Restores the lock of an earlier run; returns `None` if it is over.
    fn recall(&self, mut record: LockRecord) -> Result<Option<Lease>, LockRefusal> {
        let (app, service) = (record.app, record.service.clone());
        let file = self.lease_path(app, &service);
        let folder = self.tree.service(app, &service);
        let folder = folder.map_err(failed(self.folder(app, &service)))?;
        let lock = folder.map(|folder| self.lock_with(&folder, &record.token));
        let left = self.leases.left(&record);
        let same_boot = self.leases.is_of_this_boot(&record);
        let stands = lock.as_ref().is_some_and(LockFile::is_ours);
        let goes_on = if same_boot {
            // If the file once existed and is gone, it was removed by hand.
            stands || !record.is_placed
        } else {
            record.survives_reboot
        };
        if left.is_zero() || !goes_on {
            lock.iter().for_each(LockFile::release);
            return Ok(None);
        }
        if !stands {
            let folder = self.tree.make_service(app, &service);
            let folder = folder.map_err(failed(self.folder(app, &service)))?;
            let lock = self.lock_with(&folder, &record.token);
            if !lock.take(&self.tree).map_err(failed(file))? {
                tracing::warn!(
                    %app, %service,
                    "the update lock of `{service}` was not put back: another one is in its place"
                );
                return Ok(None);
            }
        }
        if !same_boot || !record.is_placed {
            let ms = i64::try_from(left.as_millis()).unwrap_or(i64::MAX);
            record.is_placed = true;
            record.boot.clone_from(&self.leases.boot);
            record.expires_in_boot = boot::uptime_ms().saturating_add(ms);
            self.store_lock(&record)?;
        }
        Ok(Some(Lease::new(record, left)))
    }
}
