//! The table of keys, and its contents in memory.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use model::{ApiKey, AppId, ServiceName};
use rusqlite::Connection;

use crate::error::{DatabaseError, StoreError};
use crate::rows::{name_at, number_at, row_id, rows};

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
    pub(crate) fn columns(&self) -> Result<(i64, &str), StoreError> {
        match self {
            KeyOwner::Global => Ok((0, "")),
            KeyOwner::Service { app, service } => Ok((row_id("app id", app.0)?, service.as_str())),
        }
    }
}

/// All keys, in memory.
pub(crate) struct Keys(pub(crate) BTreeMap<KeyOwner, ApiKey>);

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

pub(crate) fn insert(
    connection: &Connection,
    owner: &KeyOwner,
    key: &ApiKey,
) -> Result<(), DatabaseError> {
    let (app, service) = owner.columns()?;
    connection.execute(
        "INSERT INTO api_key (app, service, key) VALUES (?1, ?2, ?3)
         ON CONFLICT (app, service) DO UPDATE SET key = excluded.key",
        (app, service, key.reveal()),
    )?;
    Ok(())
}

pub(crate) fn fresh_key() -> Result<ApiKey, StoreError> {
    random_hex().map(ApiKey::from_text)
}

/// Returns 32 lower-case hexadecimal digits.
pub(crate) fn random_hex() -> Result<String, StoreError> {
    let mut bytes = [0_u8; 16];
    getrandom::fill(&mut bytes).map_err(StoreError::Random)?;
    Ok(hex::encode(bytes))
}
