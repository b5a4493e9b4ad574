//! What was begun over the API and is not finished: written before the first step, removed after the
//! last, so that a kill between them is followed by the rest.

use serde_json::Value;

use crate::rows::json_at;
use crate::{Store, StoreError};

/// One intent. `kind` and `key` name it, for example `purge` of app `12`.
#[derive(Debug, Clone, PartialEq)]
pub struct Intent {
    /// Which sort of intent; each has one owner, who alone knows its values.
    pub kind: String,
    /// What it is about, unique in its kind.
    pub key: String,
    /// What the owner needs to go on, as JSON that is not looked at.
    pub value: Value,
}

impl Store {
    /// Puts an intent; one of the same kind and key is replaced and keeps its place in the order.
    ///
    /// # Errors
    /// [`StoreError::Failed`] where it cannot be written.
    pub fn put_intent(&self, kind: &str, key: &str, value: &Value) -> Result<(), StoreError> {
        self.execute(
            "write an intent",
            "INSERT INTO intent (kind, key, value) VALUES (?1, ?2, ?3)
             ON CONFLICT (kind, key) DO UPDATE SET value = excluded.value",
            [kind, key, &value.to_string()],
        )
    }

    /// All intents, in the order that they were put.
    ///
    /// # Errors
    /// [`StoreError::Damaged`] or [`StoreError::Failed`] where they cannot be read.
    pub fn intents(&self) -> Result<Vec<Intent>, StoreError> {
        let query = "SELECT kind, key, value FROM intent ORDER BY number";
        self.rows("read the intents", query, |row| {
            Ok(Intent {
                kind: row.get(0)?,
                key: row.get(1)?,
                value: json_at(row, 2, "an intent")?,
            })
        })
    }

    /// Removes an intent; one that is not there is no error.
    ///
    /// # Errors
    /// [`StoreError::Failed`] where that cannot be written.
    pub fn remove_intent(&self, kind: &str, key: &str) -> Result<(), StoreError> {
        self.execute(
            "remove an intent",
            "DELETE FROM intent WHERE kind = ?1 AND key = ?2",
            [kind, key],
        )
    }
}
