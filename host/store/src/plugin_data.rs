//! The data of plugins, each in its own namespace: the implementation of the interface `store`
//! (`wit/store.wit`), with its limits.

use std::path::Path;
use std::time::{Duration, SystemTime};

use rusqlite::{Connection, OptionalExtension};

use crate::database_files::FILE_NAME;
use crate::error::{PluginDataError, StoreError};
use crate::plugin_usage::Usage;
use crate::read_only::read_only;
use crate::store::Store;

/// The maximum size of a key, in bytes.
pub const MAX_KEY: usize = 256;
/// The maximum size of a value, in bytes.
pub const MAX_VALUE: usize = 64 << 10;
/// The maximum size of all keys and values of one plugin, in bytes.
pub const MAX_TOTAL: usize = 1 << 20;
/// The maximum number of keys of one plugin.
pub const MAX_KEYS: usize = 10_000;

/// Returns the size in bytes of a key with its value, if it exists.
fn stored(connection: &Connection, plugin: &str, key: &str) -> rusqlite::Result<Option<usize>> {
    let bytes: Option<i64> = connection
        .query_row(
            "SELECT octet_length(key) + octet_length(value) FROM plugin_data
             WHERE plugin = ?1 AND key = ?2",
            [plugin, key],
            |row| row.get(0),
        )
        .optional()?;
    Ok(bytes.map(|bytes| usize::try_from(bytes).unwrap_or(usize::MAX)))
}

/// Removes expired entries; returns whether there were any.
fn remove_expired(work: &Connection, plugin: &str, now: i64) -> rusqlite::Result<bool> {
    let statement = "DELETE FROM plugin_data WHERE plugin = ?1 AND expires_at <= ?2";
    Ok(work.execute(statement, (plugin, now))? > 0)
}

/// Returns the device's clock, in milliseconds since the epoch.
fn now() -> i64 {
    let since_epoch = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    milliseconds(since_epoch.unwrap_or_default())
}

fn milliseconds(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}

/// A change to a plugin's key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ValueChange<'a> {
    /// The condition for the change.
    pub condition: Condition<'a>,
    /// The new value; `None` to remove the key.
    pub value: Option<&'a [u8]>,
    /// The lifetime by the device's clock; unlimited if `None`.
    pub lifetime: Option<Duration>,
}

/// The condition for a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Condition<'a> {
    /// Always change the key.
    Always,
    /// Change the key if it has this value; `None` if it must not exist.
    Holds(Option<&'a [u8]>),
}

impl<'a> ValueChange<'a> {
    /// Sets the key, whatever its value is.
    #[must_use]
    pub fn set(value: &'a [u8]) -> ValueChange<'a> {
        ValueChange {
            condition: Condition::Always,
            value: Some(value),
            lifetime: None,
        }
    }
}

impl Store {
    /// Returns the value of a plugin's `key`.
    ///
    /// # Errors
    /// [`PluginDataError::Store`] if it cannot be read.
    pub fn plugin_get(&self, plugin: &str, key: &str) -> Result<Option<Vec<u8>>, PluginDataError> {
        value_of(&self.connection(), plugin, key, now())
            .map_err(|source| StoreError::failed("read a plugin's data")(source).into())
    }

    /// Removes a plugin's `key`; a missing one is not an error.
    ///
    /// # Errors
    /// [`PluginDataError::Store`] if that cannot be written.
    pub fn plugin_delete(&self, plugin: &str, key: &str) -> Result<(), PluginDataError> {
        let mut usage = self.plugin_usage();
        // It is summed up again before the next write.
        usage.remove(plugin);
        let deleted = self.execute(
            "remove a plugin's data",
            "DELETE FROM plugin_data WHERE plugin = ?1 AND key = ?2",
            [plugin, key],
        );
        Ok(deleted?)
    }

    /// Changes the value of a plugin's `key`. Returns whether it did: if the condition was not met, nothing was
    /// changed.
    ///
    /// # Errors
    /// [`PluginDataError::TooLarge`] over a limit, [`PluginDataError::Store`] if it cannot be read or written; then
    /// nothing is changed.
    pub fn plugin_change(
        &self,
        plugin: &str,
        key: &str,
        change: &ValueChange<'_>,
    ) -> Result<bool, PluginDataError> {
        if key.len() > MAX_KEY {
            return Err(PluginDataError::TooLarge(format!(
                "a key of {} bytes is over the limit of {MAX_KEY}",
                key.len()
            )));
        }
        let length = change.value.map_or(0, <[u8]>::len);
        if length > MAX_VALUE {
            return Err(PluginDataError::TooLarge(format!(
                "a value of {length} bytes is over the limit of {MAX_VALUE}"
            )));
        }
        // Held until the write is done, so that the sum matches the stored data.
        let mut usage = self.plugin_usage();
        if let Condition::Holds(expected) = change.condition {
            // There are no other writers while the lock is held: a value that differs now would differ at the write as
            // well, so no write is needed.
            let value = value_of(&self.connection(), plugin, key, now());
            let value = value.map_err(StoreError::failed("read a plugin's data"))?;
            if value.as_deref() != expected {
                return Ok(false);
            }
        }
        // The transaction's own result belongs to the store; an exceeded limit is passed through
        // it.
        let outcome = self.write("write a plugin's data", |work| {
            let now = now();
            let has_expired = remove_expired(work, plugin, now)?;
            let known = usage.get(plugin).filter(|_| !has_expired);
            let before = match known {
                Some(known) => *known,
                None => Usage::read(work, plugin)?,
            };
            let others = before.without(stored(work, plugin, key)?);
            let Some(value) = change.value else {
                work.execute(
                    "DELETE FROM plugin_data WHERE plugin = ?1 AND key = ?2",
                    [plugin, key],
                )?;
                return Ok(Ok(others));
            };
            let after = others.with(key.len().saturating_add(value.len()));
            if after.bytes > MAX_TOTAL {
                let limit = format!(
                    "all keys and values together, {} bytes, are over the limit of {MAX_TOTAL}",
                    after.bytes
                );
                return Ok(Err((limit, before)));
            }
            if after.keys > MAX_KEYS {
                let limit = format!("there are {MAX_KEYS} keys, which is the limit");
                return Ok(Err((limit, before)));
            }
            let expires_at = change.lifetime.map(milliseconds);
            let expires_at = expires_at.map(|lifetime| now.saturating_add(lifetime));
            work.execute(
                "INSERT INTO plugin_data (plugin, key, value, expires_at) VALUES (?1, ?2, ?3, ?4)
                 ON CONFLICT (plugin, key)
                 DO UPDATE SET value = excluded.value, expires_at = excluded.expires_at",
                (plugin, key, value, expires_at),
            )?;
            Ok(Ok(after))
        });
        match outcome {
            Ok(Ok(after)) => {
                usage.insert(plugin.to_owned(), after);
                Ok(true)
            }
            Ok(Err((limit, before))) => {
                usage.insert(plugin.to_owned(), before);
                Err(PluginDataError::TooLarge(limit))
            }
            Err(error) => {
                // Whether it was written is determined by the next read.
                usage.remove(plugin);
                Err(error.into())
            }
        }
    }

    /// Returns a plugin's keys that begin with `prefix`, sorted.
    ///
    /// # Errors
    /// [`PluginDataError::Store`] if they cannot be read.
    pub fn plugin_keys(&self, plugin: &str, prefix: &str) -> Result<Vec<String>, PluginDataError> {
        let keys = keys_from(&self.connection(), plugin, prefix, now());
        Ok(keys.map_err(StoreError::failed("read a plugin's keys"))?)
    }
}

/// Returns the value of a plugin's `key` in the store in `folder`, even while a supervisor runs on it; `None` also if
/// there is no store yet. Nothing is changed or created.
///
/// # Errors
/// [`StoreError::Failed`] if it cannot be read.
pub fn read_plugin_value(
    folder: &Path,
    plugin: &str,
    key: &str,
) -> Result<Option<Vec<u8>>, StoreError> {
    let path = folder.join(FILE_NAME);
    if !path.exists() {
        return Ok(None);
    }
    read_only(&path, "")
        .and_then(|connection| value_of(&connection, plugin, key, now()))
        .map_err(StoreError::failed("read a plugin's data"))
}

/// Returns the value of a key that exists and has not expired.
fn value_of(
    connection: &Connection,
    plugin: &str,
    key: &str,
    now: i64,
) -> rusqlite::Result<Option<Vec<u8>>> {
    let query = "SELECT value FROM plugin_data
         WHERE plugin = ?1 AND key = ?2 AND (expires_at IS NULL OR expires_at > ?3)";
    connection
        .query_row(query, (plugin, key, now), |row| row.get(0))
        .optional()
}

fn keys_from(
    connection: &Connection,
    plugin: &str,
    prefix: &str,
    now: i64,
) -> rusqlite::Result<Vec<String>> {
    // Keys with the same prefix are adjacent, and the first of them is the smallest key that is not
    // less than the prefix.
    let query = "SELECT key FROM plugin_data
         WHERE plugin = ?1 AND key >= ?2 AND (expires_at IS NULL OR expires_at > ?3) ORDER BY key";
    let mut statement = connection.prepare(query)?;
    let mut rows = statement.query((plugin, prefix, now))?;
    let mut keys = Vec::new();
    while let Some(row) = rows.next()? {
        let key: String = row.get(0)?;
        if !key.starts_with(prefix) {
            break;
        }
        keys.push(key);
    }
    Ok(keys)
}
