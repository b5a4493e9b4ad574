//! Update locks that services took over the API: files in a volatile folder, which a restart of the
//! supervisor finds again and which may have to be restored after a reboot.

use model::{AppId, ServiceName};

use crate::error::StoreError;
use crate::rows::{name_at, number_at, row_id};
use crate::store::Store;

/// One such lock. Times are in milliseconds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LockRecord {
    /// The app of the service that took it.
    pub app: AppId,
    /// The service that took it, which has at most one lock.
    pub service: ServiceName,
    /// The contents of its file, which no other file has.
    pub token: String,
    /// Why it is held, in the service's words.
    pub reason: String,
    /// The time for which it was taken or last renewed.
    pub ttl: i64,
    /// Since the epoch.
    pub taken_at: i64,
    /// Since the epoch.
    pub expires_at: i64,
    /// The boot in which it was last written; empty if that is unknown.
    pub boot: String,
    /// Since that boot: this value counts as long as that boot lasts, as the time of day may be
    /// changed.
    pub expires_in_boot: i64,
    /// Whether it is restored after a reboot, which removes the others.
    pub survives_reboot: bool,
    /// Whether its file was put into the folder: if it is missing, it was removed by someone else.
    pub is_placed: bool,
}

impl Store {
    /// Stores a lock; one of the same service is replaced.
    ///
    /// # Errors
    /// [`StoreError::Failed`] if it cannot be written.
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

    /// Returns all locks, by app and service.
    ///
    /// # Errors
    /// [`StoreError::Damaged`] or [`StoreError::Failed`] if they cannot be read.
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

    /// Removes the lock of a service; it is not an error if there is none.
    ///
    /// # Errors
    /// [`StoreError::Failed`] if that cannot be written.
    pub fn forget_lock(&self, app: AppId, service: &ServiceName) -> Result<(), StoreError> {
        self.execute(
            "delete an update lock",
            "DELETE FROM update_lock WHERE app = ?1 AND service = ?2",
            (row_id("app id", app.0)?, service.as_str()),
        )
    }
}
