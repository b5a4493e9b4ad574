//! Actions that were begun over the API and are not finished: written before the first step,
//! removed after the last, so that after a kill between them the rest can be carried out.

use serde_json::Value;

use crate::error::StoreError;
use crate::rows::json_at;
use crate::store::Store;

/// One intent. `kind` and `key` name it, for example `purge` of app `12`.
#[derive(Debug, Clone, PartialEq)]
pub struct Intent {
    /// The kind of intent; each has one owner, which is the only one to know its values.
    pub kind: String,
    /// The subject of the intent, unique in its kind.
    pub key: String,
    /// The data with which the owner continues, as JSON that the store does not interpret.
    pub value: Value,
}

impl Store {
    /// Stores an intent; one of the same kind and key is replaced and keeps its place in the order.
    ///
    /// # Errors
    /// [`StoreError::Failed`] if it cannot be written.
    pub fn put_intent(&self, kind: &str, key: &str, value: &Value) -> Result<(), StoreError> {
        self.put_intents(kind, [(key, value)])
    }

    /// Stores several intents of one kind, by their keys: all of them or none.
    ///
    /// # Errors
    /// [`StoreError::Failed`] if they cannot be written.
    pub fn put_intents<'a>(
        &self,
        kind: &str,
        intents: impl IntoIterator<Item = (&'a str, &'a Value)>,
    ) -> Result<(), StoreError> {
        self.write("write an intent", |work| {
            let mut insert = work.prepare(
                "INSERT INTO intent (kind, key, value) VALUES (?1, ?2, ?3)
                 ON CONFLICT (kind, key) DO UPDATE SET value = excluded.value",
            )?;
            for (key, value) in intents {
                insert.execute([kind, key, &value.to_string()])?;
            }
            Ok(())
        })
    }

    /// Returns all intents, in the order in which they were stored.
    ///
    /// # Errors
    /// [`StoreError::Damaged`] or [`StoreError::Failed`] if they cannot be read.
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

    /// Removes an intent; a missing one is not an error.
    ///
    /// # Errors
    /// [`StoreError::Failed`] if that cannot be written.
    pub fn remove_intent(&self, kind: &str, key: &str) -> Result<(), StoreError> {
        self.execute(
            "remove an intent",
            "DELETE FROM intent WHERE kind = ?1 AND key = ?2",
            [kind, key],
        )
    }
}
