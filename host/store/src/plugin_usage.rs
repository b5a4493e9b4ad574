//! How much data a plugin has stored.

use rusqlite::Connection;

/// A plugin's stored amount of data, kept in memory so that writes need not sum it up.
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

    /// Subtracts an entry of this many bytes, if there is one.
    pub(crate) fn without(self, entry: Option<usize>) -> Usage {
        match entry {
            None => self,
            Some(bytes) => Usage {
                keys: self.keys.saturating_sub(1),
                bytes: self.bytes.saturating_sub(bytes),
            },
        }
    }

    /// Adds an entry of this many bytes.
    pub(crate) fn with(self, bytes: usize) -> Usage {
        Usage {
            keys: self.keys.saturating_add(1),
            bytes: self.bytes.saturating_add(bytes),
        }
    }
}
