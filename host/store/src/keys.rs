//! The keys to the device's API: one global key, one for each service that requested it
//! (docs/spec/device.md#keys-scope).

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use model::compose::{ApiKeys, KeyError};
use model::{ApiKey, AppId, ServiceName};
use rusqlite::Connection;
use subtle::{Choice, ConditionallySelectable, ConstantTimeEq};

use crate::database_files::FILE_NAME;
use crate::error::DatabaseError;
use crate::open::write_log_into_file;
use crate::read_only::read_only;
use crate::rows::{name_at, number_at, row_id, rows};
use crate::{Store, StoreError, copied};

/// The owner of a key.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum KeyOwner {
    /// The device's own: covers every app.
    Global,
    /// One service's: covers its app.
    Service {
        /// The app that the key covers.
        app: AppId,
        /// The service of the app that has the key in its environment.
        service: ServiceName,
    },
}

impl KeyOwner {
    /// Returns the columns that identify the owner in a row.
    fn columns(&self) -> Result<(i64, &str), StoreError> {
        match self {
            KeyOwner::Global => Ok((0, "")),
            KeyOwner::Service { app, service } => Ok((row_id("app id", app.0)?, service.as_str())),
        }
    }
}

/// All keys, in memory.
pub(crate) struct Keys(BTreeMap<KeyOwner, ApiKey>);

impl Keys {
    /// Reads the table, and creates the global key if there is none yet.
    pub(crate) fn load(work: &Connection) -> Result<Keys, StoreError> {
        let keys = rows(work, "SELECT app, service, key FROM api_key", |row| {
            let owner = if row.get_ref(1)?.as_str().is_ok_and(str::is_empty) {
                KeyOwner::Global
            } else {
                KeyOwner::Service {
                    app: AppId(number_at(row, 0)?),
                    service: name_at(row, 1, "the owner of an API key")?,
                }
            };
            let key: String = row.get(2)?;
            if !is_hex_key(&key) {
                return Err(DatabaseError::from(StoreError::Damaged {
                    what: "an API key",
                    // Half a key is still a secret.
                    value: format!("{} bytes", key.len()),
                }));
            }
            Ok((owner, ApiKey::from_text(key)))
        });
        let mut keys: BTreeMap<_, _> = keys.map_err(DatabaseError::during("read the API keys"))?;
        if let Entry::Vacant(global) = keys.entry(KeyOwner::Global) {
            let key = fresh_key()?;
            let written = insert(work, &KeyOwner::Global, &key);
            written.map_err(DatabaseError::during("write an API key"))?;
            global.insert(key);
        }
        Ok(Keys(keys))
    }
}

/// Returns whether a text has the form of this store's keys.
fn is_hex_key(text: &str) -> bool {
    text.len() == 32 && text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
}

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

fn insert(connection: &Connection, owner: &KeyOwner, key: &ApiKey) -> Result<(), DatabaseError> {
    let (app, service) = owner.columns()?;
    connection.execute(
        "INSERT INTO api_key (app, service, key) VALUES (?1, ?2, ?3)
         ON CONFLICT (app, service) DO UPDATE SET key = excluded.key",
        (app, service, key.reveal()),
    )?;
    Ok(())
}

fn fresh_key() -> Result<ApiKey, StoreError> {
    random_hex().map(ApiKey::from_text)
}

/// Returns 32 lower-case hexadecimal digits.
pub(crate) fn random_hex() -> Result<String, StoreError> {
    let mut bytes = [0_u8; 16];
    getrandom::fill(&mut bytes).map_err(StoreError::Random)?;
    Ok(hex::encode(bytes))
}
