//! The [`Store`]: one connection behind a lock, and the keys in memory.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use model::DeviceUuid;
use parking_lot::{Mutex, MutexGuard, RwLock, RwLockReadGuard, RwLockWriteGuard};
use rusqlite::{Connection, Params, Row, Transaction};
use secure_fs::SecureFile;

use crate::database::{LoadedDatabase, reconnect};
use crate::database_files::COMPANIONS;
use crate::error::{DatabaseError, StoreError};
use crate::key_table::Keys;
use crate::moments::WriteMoments;
use crate::plugin_usage::Usage;
use crate::remembered::{self, DeviceUuids};
use crate::rows::{begin, rows};
use crate::{copied, identity};

/// The device's persistent data. Clones share it.
#[derive(Clone)]
pub struct Store {
    inner: Arc<SharedStore>,
}

struct SharedStore {
    connection: Mutex<Connection>,
    /// The path of the database while a copy of it is read; locked after the connection.
    away_from: Mutex<Option<PathBuf>>,
    uuid: DeviceUuid,
    /// Whether the uuid was created when this store was opened.
    uuid_is_new: bool,
    /// The file with the device's identity, outside the database.
    identity: Option<SecureFile>,
    /// The contents of the table of keys: every request is compared with all of them.
    keys: RwLock<Keys>,
    /// The stored amount of data of plugins that have written; locked before the connection.
    plugin_usage: Mutex<BTreeMap<String, Usage>>,
    moments: WriteMoments,
    /// Whether the last write failed because its disk accepted none.
    was_refused: AtomicBool,
    /// Holds the lock on the state folder.
    _lock: File,
}

impl std::fmt::Debug for Store {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Store")
            .field("uuid", &self.inner.uuid)
            .finish_non_exhaustive()
    }
}

impl Store {
    /// Creates the store. `away_from` is the database whose copy was loaded, if it is one.
    pub(crate) fn new(
        loaded: LoadedDatabase,
        away_from: Option<PathBuf>,
        identity: Option<SecureFile>,
        lock: File,
    ) -> Store {
        let store = Store {
            inner: Arc::new(SharedStore {
                connection: Mutex::new(loaded.connection),
                away_from: Mutex::new(away_from),
                uuid: loaded.identity.uuid,
                uuid_is_new: loaded.identity.is_new,
                identity,
                keys: RwLock::new(loaded.identity.keys),
                plugin_usage: Mutex::default(),
                moments: WriteMoments::default(),
                was_refused: AtomicBool::new(false),
                _lock: lock,
            }),
        };
        if store.is_on_disk() {
            store.remember_identity();
        }
        store
    }

    /// Returns whether the database itself is open, rather than a copy because its disk accepts no writes.
    #[must_use]
    pub fn is_on_disk(&self) -> bool {
        self.inner.away_from.lock().is_none()
    }

    /// Returns whether the disk accepts writes, as far as is known: after a write that failed for that reason, it is
    /// tried.
    #[must_use]
    pub fn takes_writes(&self) -> bool {
        if !self.is_on_disk() {
            return false;
        }
        if !self.inner.was_refused.load(Ordering::Relaxed) {
            return true;
        }
        let path = self.connection().path().map(PathBuf::from);
        let folder = path.as_deref().and_then(Path::parent);
        let takes_writes = folder.is_none_or(|folder| copied::why_unwritable(folder).is_none());
        if takes_writes {
            self.inner.was_refused.store(false, Ordering::Relaxed);
        }
        takes_writes
    }

    /// Writes the identity outside the database.
    fn remember_identity(&self) {
        if let (Some(file), Ok(former)) = (&self.inner.identity, self.former_uuids()) {
            let uuid = self.device_uuid().clone();
            remembered::write(file, &DeviceUuids { uuid, former });
        }
    }

    /// Returns the device's uuid; created at its first start, the same from then on.
    #[must_use]
    pub fn device_uuid(&self) -> &DeviceUuid {
        &self.inner.uuid
    }

    /// Changes the device's uuid to `uuid`: that of its config.json, which takes precedence if it names one. To be
    /// called at the start, while there are no clones of the store.
    ///
    /// # Errors
    /// [`StoreError::Failed`] if it cannot be written, or there are clones of the store; then the uuid does not change.
    pub fn adopt_device_uuid(&mut self, uuid: &DeviceUuid) -> Result<(), StoreError> {
        const ACTION: &str = "write the device's uuid";
        if *self.device_uuid() == *uuid {
            return Ok(());
        }
        let before = self.device_uuid().clone();
        // Clones would continue with the old one.
        let Some(inner) = Arc::get_mut(&mut self.inner) else {
            return Err(StoreError::failed(ACTION)(rusqlite::Error::InvalidQuery));
        };
        inner.uuid = uuid.clone();
        let was_new = std::mem::take(&mut inner.uuid_is_new);
        let written = self.write(ACTION, |work| {
            Ok(identity::change_uuid(work, &before, uuid)?)
        });
        if let Err(error) = written {
            if let Some(inner) = Arc::get_mut(&mut self.inner) {
                inner.uuid = before;
                inner.uuid_is_new = was_new;
            }
            return Err(error);
        }
        self.remember_identity();
        if was_new {
            tracing::info!(%uuid, "this device is `{uuid}`, according to its config.json");
        } else {
            tracing::warn!(
                %uuid,
                former = %before,
                "this device was `{before}` and is `{uuid}` now: what ran under the old uuid is replaced or removed"
            );
        }
        Ok(())
    }

    /// Returns former uuids of the device, the latest first: objects that it created then carry them.
    ///
    /// # Errors
    /// [`StoreError::Damaged`] or [`StoreError::Failed`] if they cannot be read.
    pub fn former_uuids(&self) -> Result<Vec<DeviceUuid>, StoreError> {
        identity::former_uuids(&self.connection())
    }

    /// Returns the size of the database on the disk in bytes, with SQLite's files next to it; 0 if that cannot be read.
    #[must_use]
    pub fn size(&self) -> u64 {
        let Some(path) = self.connection().path().map(str::to_owned) else {
            return 0;
        };
        let files = COMPANIONS.iter().map(|end| format!("{path}{end}"));
        let sizes = files.filter_map(|file| std::fs::metadata(file).ok());
        sizes.map(|about| about.len()).sum()
    }

    pub(crate) fn plugin_usage(&self) -> MutexGuard<'_, BTreeMap<String, Usage>> {
        self.inner.plugin_usage.lock()
    }

    /// Reports [`BEFORE_WRITE`](crate::BEFORE_WRITE) and [`AFTER_WRITE`](crate::AFTER_WRITE) of each write from now on to
    /// `listener`, on the writing thread; it replaces the previous listener.
    #[cfg(feature = "moments")]
    pub fn set_write_listener(&self, listener: Option<crate::moments::Listener>) {
        self.inner.moments.set_listener(listener);
    }

    pub(crate) fn keys(&self) -> RwLockReadGuard<'_, Keys> {
        self.inner.keys.read()
    }

    pub(crate) fn keys_mut(&self) -> RwLockWriteGuard<'_, Keys> {
        self.inner.keys.write()
    }

    /// Returns the connection, for one read.
    pub(crate) fn connection(&self) -> MutexGuard<'_, Connection> {
        // A panic elsewhere leaves no partial work here: a transaction is rolled back during unwinding.
        self.inner.connection.lock()
    }

    /// Runs `work` in one transaction, which has reached the disk when this returns.
    pub(crate) fn write<T>(
        &self,
        action: &'static str,
        work: impl FnOnce(&Transaction<'_>) -> Result<T, DatabaseError>,
    ) -> Result<T, StoreError> {
        self.inner.moments.before();
        let done = {
            let mut connection = self.connection();
            self.return_to_disk(&mut connection)?;
            let done = begin(&mut connection, action, work);
            let is_refused = done.as_ref().is_err_and(StoreError::is_of_the_disk);
            self.inner.was_refused.store(is_refused, Ordering::Relaxed);
            done?
        };
        self.inner.moments.after();
        Ok(done)
    }

    /// Runs one statement, in its own transaction.
    pub(crate) fn execute(
        &self,
        action: &'static str,
        statement: &str,
        values: impl Params,
    ) -> Result<(), StoreError> {
        self.write(action, |work| {
            work.execute(statement, values)?;
            Ok(())
        })
    }

    /// Returns all rows of a query.
    pub(crate) fn rows<T, C: FromIterator<T>>(
        &self,
        action: &'static str,
        query: &str,
        read: impl FnMut(&Row<'_>) -> Result<T, DatabaseError>,
    ) -> Result<C, StoreError> {
        rows(&self.connection(), query, read).map_err(DatabaseError::during(action))
    }

    /// Opens the database itself after a copy was read. It still equals the copy, as nothing was written.
    fn return_to_disk(&self, connection: &mut Connection) -> Result<(), StoreError> {
        let mut away = self.inner.away_from.lock();
        if let Some(path) = away.as_ref() {
            *connection = reconnect(path)?;
            tracing::info!(path = %path.display(), "`{}` can be written again", path.display());
            *away = None;
        }
        Ok(())
    }
}
