//! The keys to the device's API: one global key, one for each service that requested it
//! (docs/spec/device.md#keys-scope).

use std::collections::BTreeSet;
use std::path::Path;

use model::compose::{ApiKeys, KeyError};
use model::{ApiKey, AppId, ServiceName};
use subtle::{Choice, ConditionallySelectable, ConstantTimeEq};

use crate::copied;
use crate::database::write_log_into_file;
use crate::database_files::FILE_NAME;
use crate::error::StoreError;
use crate::key_table::{KeyOwner, Keys, fresh_key, insert};
use crate::read_only::read_only;
use crate::store::Store;

impl Store {
    /// Returns the device's own key, which covers every app.
    ///
    /// # Errors
    /// As [`Store::service_key`]; in practice none, since the key is created when the store is
    /// opened.
    pub fn global_key(&self) -> Result<ApiKey, StoreError> {
        self.key_of(&KeyOwner::Global)
    }

    /// Returns the key of one service; created at the first call, the same from then on.
    ///
    /// # Errors
    /// [`StoreError`] if a new one can be neither created nor written.
    pub fn service_key(&self, app: AppId, service: &ServiceName) -> Result<ApiKey, StoreError> {
        self.key_of(&KeyOwner::Service {
            app,
            service: service.clone(),
        })
    }

    /// Returns the owner of this key. The time that it takes does not reveal how much of a wrong
    /// key is right: all keys are compared, each of them completely.
    #[must_use]
    pub fn key_owner(&self, offered: &str) -> Option<KeyOwner> {
        let keys = self.keys();
        // One more than the position; 0 means none.
        let mut found = 0_u64;
        for (position, key) in (1_u64..).zip(keys.0.values()) {
            let equal: Choice = key.reveal().as_bytes().ct_eq(offered.as_bytes());
            found.conditional_assign(&position, equal);
        }
        let position = usize::try_from(found.checked_sub(1)?).ok()?;
        keys.0.keys().nth(position).cloned()
    }

    /// Replaces an owner's key with a new one; the old one is invalid from then on.
    ///
    /// # Errors
    /// [`StoreError`] if the new one can be neither created nor written; then the old one stays
    /// valid.
    pub fn regenerate_key(&self, owner: &KeyOwner) -> Result<ApiKey, StoreError> {
        // Held during the write, so that memory and table change together.
        let mut keys = self.keys_mut();
        let key = fresh_key()?;
        self.write("write an API key", |work| insert(work, owner, &key))?;
        if *owner == KeyOwner::Global {
            write_log_into_file(&self.connection());
        }
        keys.0.insert(owner.clone(), key.clone());
        Ok(key)
    }

    /// Revokes the key of a service that is no longer in use; it is not an error if the service has
    /// none.
    ///
    /// # Errors
    /// [`StoreError`] if that cannot be written; then the key stays valid.
    pub fn forget_service_key(&self, app: AppId, service: &ServiceName) -> Result<(), StoreError> {
        let owner = KeyOwner::Service {
            app,
            service: service.clone(),
        };
        let mut keys = self.keys_mut();
        if !keys.0.contains_key(&owner) {
            return Ok(());
        }
        self.execute(
            "delete an API key",
            "DELETE FROM api_key WHERE app = ?1 AND service = ?2",
            owner.columns()?,
        )?;
        keys.0.remove(&owner);
        Ok(())
    }

    /// Returns the services that have a key.
    #[must_use]
    pub fn services_with_keys(&self) -> BTreeSet<(AppId, ServiceName)> {
        let keys = self.keys();
        let owners = keys.0.keys().filter_map(|owner| match owner {
            KeyOwner::Global => None,
            KeyOwner::Service { app, service } => Some((*app, service.clone())),
        });
        owners.collect()
    }

    fn key_of(&self, owner: &KeyOwner) -> Result<ApiKey, StoreError> {
        let known = |keys: &Keys| keys.0.get(owner).cloned();
        if let Some(key) = known(&self.keys()) {
            return Ok(key);
        }
        let mut keys = self.keys_mut();
        // Another thread may have created it in between.
        if let Some(key) = known(&keys) {
            return Ok(key);
        }
        let key = fresh_key()?;
        self.write("write an API key", |work| insert(work, owner, &key))?;
        keys.0.insert(owner.clone(), key.clone());
        Ok(key)
    }
}

impl ApiKeys for Store {
    fn service_key(&self, app: AppId, service: &ServiceName) -> Result<ApiKey, KeyError> {
        Store::service_key(self, app, service).map_err(|error| KeyError {
            app,
            service: service.clone(),
            source: Box::new(error),
        })
    }
}

/// Reads the global key of the store in `folder`, even while a supervisor runs on it (`supervisor
/// api-key show`). Nothing is changed or created.
///
/// # Errors
/// [`StoreError::NoState`] if there is no store yet, [`StoreError::Failed`] if it cannot be read.
pub fn read_global_key(folder: &Path) -> Result<ApiKey, StoreError> {
    let path = folder.join(FILE_NAME);
    let no_state = || StoreError::NoState {
        folder: folder.to_owned(),
    };
    if !path.exists() {
        return Err(no_state());
    }
    let key = stored_key(&path, "").or_else(|failed| {
        // To read a database, SQLite creates files next to it, for which a full or read-only disk has no room. The file
        // itself contains the key since its creation.
        match copied::why_unwritable(folder) {
            Some(_) => stored_key(&path, "?immutable=1").map_err(|_| failed),
            None => Err(failed),
        }
    });
    match key {
        Ok(key) => Ok(ApiKey::from_text(key)),
        Err(rusqlite::Error::QueryReturnedNoRows) => Err(no_state()),
        Err(source) => Err(StoreError::failed("read the API key")(source)),
    }
}

/// Reads the global key from the database at `path`, opened with these parameters of its address.
fn stored_key(path: &Path, parameters: &str) -> rusqlite::Result<String> {
    read_only(path, parameters)?.query_row(
        "SELECT key FROM api_key WHERE app = 0 AND service = ''",
        [],
        |row| row.get(0),
    )
}
