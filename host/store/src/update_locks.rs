//! Update locks that services took over the API: files in a volatile folder, which a restart of the
//! supervisor finds again and a reboot may have to put back.

use model::{AppId, ServiceName};

use crate::rows::{name_at, number_at, row_id};
use crate::{Store, StoreError};

/// One such lock. Times are in milliseconds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LockRecord {
    /// The app of the service that took it.
    pub app: AppId,
    /// The service that took it, which has one lock at most.
    pub service: ServiceName,
    /// What its file holds, and no other file.
    pub token: String,
    /// Why it is held, as the service said when it took it.
    pub reason: String,
    /// For how long it was taken or last renewed.
    pub ttl: i64,
    /// Since the epoch.
    pub taken_at: i64,
    /// Since the epoch.
    pub expires_at: i64,
    /// The boot in which it was last written; empty where that is not known.
    pub boot: String,
    /// Since that boot: what counts while it lasts, as the time of day may be set.
    pub expires_in_boot: i64,
    /// Put back after a reboot, which removes the others.
    pub survives_reboot: bool,
    /// Its file was put into the folder: one that is missing was taken away by somebody.
    pub is_placed: bool,
}

impl Store {
    /// Puts a lock; one of the same service is replaced.
    ///
    /// # Errors
    /// [`StoreError::Failed`] where it cannot be written.
    pub fn put_lock(&self, record: &LockRecord) -> Result<(), StoreError> {
        self.execute(
            "write an update lock",
            "INSERT OR REPLACE INTO update_lock
             (app, service, token, reason, ttl, taken_at, expires_at, boot, expires_in_boot,
              survives_reboot, is_placed)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)",
            (
                row_id("app id", record.app.0)?,
                record.service.as_str(),
                &record.token,
                &record.reason,
                record.ttl,
                record.taken_at,
                record.expires_at,
                &record.boot,
                record.expires_in_boot,
                record.survives_reboot,
                record.is_placed,
            ),
        )
    }

    /// All of them, by app and service.
    ///
    /// # Errors
    /// [`StoreError::Damaged`] or [`StoreError::Failed`] where they cannot be read.
    pub fn lock_records(&self) -> Result<Vec<LockRecord>, StoreError> {
        let query =
            "SELECT app, service, token, reason, ttl, taken_at, expires_at, boot, expires_in_boot,
                     survives_reboot, is_placed
                     FROM update_lock ORDER BY app, service";
        self.rows("read the update locks", query, |row| {
            Ok(LockRecord {
                app: AppId(number_at(row, 0)?),
                service: name_at(row, 1, "a service's name")?,
                token: row.get(2)?,
                reason: row.get(3)?,
                ttl: row.get(4)?,
                taken_at: row.get(5)?,
                expires_at: row.get(6)?,
                boot: row.get(7)?,
                expires_in_boot: row.get(8)?,
                survives_reboot: row.get(9)?,
                is_placed: row.get(10)?,
            })
        })
    }

    /// Forgets the lock of a service; none is no error.
    ///
    /// # Errors
    /// [`StoreError::Failed`] where that cannot be written.
    pub fn forget_lock(&self, app: AppId, service: &ServiceName) -> Result<(), StoreError> {
        self.execute(
            "delete an update lock",
            "DELETE FROM update_lock WHERE app = ?1 AND service = ?2",
            (row_id("app id", app.0)?, service.as_str()),
        )
    }
}
