//! The data of plugins, each in a space of its own: what is behind the interface `store`
//! (`wit/store.wit`), with its limits.

use std::time::{Duration, SystemTime};

use rusqlite::{Connection, OptionalExtension};

use crate::{PluginDataError, Store, StoreError};

/// Bytes of a key.
pub const MAX_KEY: usize = 256;
/// Bytes of a value.
pub const MAX_VALUE: usize = 64 << 10;
/// Bytes of all keys and values of one plugin.
pub const MAX_TOTAL: usize = 1 << 20;
/// Keys of one plugin.
pub const MAX_KEYS: usize = 10_000;

/// What a plugin has stored, kept in memory so that no write sums it up.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Usage {
    pub(crate) keys: usize,
    pub(crate) bytes: usize,
}

impl Usage {
    pub(crate) fn read(connection: &Connection, plugin: &str) -> rusqlite::Result<Usage> {
        let (keys, bytes): (i64, i64) = connection.query_row(
            "SELECT count(*), coalesce(sum(octet_length(key) + octet_length(value)), 0)
             FROM plugin_data WHERE plugin = ?1",
            [plugin],
            |row| Ok((row.get(0)?, row.get(1)?)),
        )?;
        Ok(Usage {
            keys: usize::try_from(keys).unwrap_or(usize::MAX),
            bytes: usize::try_from(bytes).unwrap_or(usize::MAX),
        })
    }

    /// Without an entry of so many bytes, if it is there.
    fn without(self, entry: Option<usize>) -> Usage {
        match entry {
            None => self,
            Some(bytes) => Usage {
                keys: self.keys.saturating_sub(1),
                bytes: self.bytes.saturating_sub(bytes),
            },
        }
    }

    /// With an entry of so many bytes more.
    fn with(self, bytes: usize) -> Usage {
        Usage {
            keys: self.keys.saturating_add(1),
            bytes: self.bytes.saturating_add(bytes),
        }
    }
}

/// Bytes of a key with its value, if it is there.
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

/// Removes what has outlived its time; answers whether anything had.
fn remove_expired(work: &Connection, plugin: &str, now: i64) -> rusqlite::Result<bool> {
    let statement = "DELETE FROM plugin_data WHERE plugin = ?1 AND expires_at <= ?2";
    Ok(work.execute(statement, (plugin, now))? > 0)
}

/// The device's clock, in milliseconds since the epoch.
fn now() -> i64 {
    let since_epoch = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    milliseconds(since_epoch.unwrap_or_default())
}

fn milliseconds(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}

/// What is to become of a plugin's key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ValueChange<'a> {
    /// When the change is made.
    pub condition: Condition<'a>,
    /// What the key holds then; none to remove it.
    pub value: Option<&'a [u8]>,
    /// For how long by the device's clock; for ever where there is none.
    pub lifetime: Option<Duration>,
}

/// When a change is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Condition<'a> {
    /// Whatever the key holds.
    Always,
    /// If the key holds this; none where it must not be there.
    Holds(Option<&'a [u8]>),
}

impl<'a> ValueChange<'a> {
    /// Sets the key, whatever it holds.
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
    /// The value of a plugin's `key`.
    ///
    /// # Errors
    /// [`PluginDataError::Store`] where it cannot be read.
    pub fn plugin_get(&self, plugin: &str, key: &str) -> Result<Option<Vec<u8>>, PluginDataError> {
        value_of(&self.connection(), plugin, key, now())
            .map_err(|source| StoreError::failed("read a plugin's data")(source).into())
    }

    /// Removes a plugin's `key`; one that is not there is no error.
    ///
    /// # Errors
    /// [`PluginDataError::Store`] where that cannot be written.
    pub fn plugin_delete(&self, plugin: &str, key: &str) -> Result<(), PluginDataError> {
        let mut usage = self.plugin_usage();
        // Summed up anew before the next write.
        usage.remove(plugin);
        let deleted = self.execute(
            "remove a plugin's data",
            "DELETE FROM plugin_data WHERE plugin = ?1 AND key = ?2",
            [plugin, key],
        );
        Ok(deleted?)
    }

    /// Changes what a plugin's `key` holds. Answers whether it did: not if the condition did not hold, and nothing was
    /// changed then.
    ///
    /// # Errors
    /// [`PluginDataError::TooLarge`] over a limit, [`PluginDataError::Store`] where it cannot be read or written; nothing
    /// is changed then.
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
        // Held until the write is done, so that the sum is that of what is stored.
        let mut usage = self.plugin_usage();
        if let Condition::Holds(expected) = change.condition {
            // Nobody else writes meanwhile: what differs now differs when it would be written, and needs no write.
            let value = value_of(&self.connection(), plugin, key, now());
            let value = value.map_err(StoreError::failed("read a plugin's data"))?;
            if value.as_deref() != expected {
                return Ok(false);
            }
        }
        // The transaction's own result is for the store; what is over a limit goes through it.
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
                // Whether it was written is for the next read to say.
                usage.remove(plugin);
                Err(error.into())
            }
        }
    }

    /// A plugin's keys that begin with `prefix`, sorted.
    ///
    /// # Errors
    /// [`PluginDataError::Store`] where they cannot be read.
    pub fn plugin_keys(&self, plugin: &str, prefix: &str) -> Result<Vec<String>, PluginDataError> {
        let keys = keys_from(&self.connection(), plugin, prefix, now());
        Ok(keys.map_err(StoreError::failed("read a plugin's keys"))?)
    }
}

/// The value of a key that is there and has not outlived its time.
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
    // Keys that begin with a text are together, and the first is the least that is not before it.
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
