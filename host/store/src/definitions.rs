//! The definitions from which containers, volumes and networks were created. The target changes before they do, and
//! definitions cannot be read back from an engine.

use serde_json::Value;

use crate::error::StoreError;
use crate::rows::json_at;
use crate::store::Store;

/// One definition. Only the reconciler knows its owner; the store just keeps it.
#[derive(Debug, Clone, PartialEq)]
pub struct Definition {
    /// The object that was created from it, as the reconciler names it; one subject may have
    /// several digests.
    pub subject: String,
    /// The digest of the configuration, as in the labels of that object.
    pub digest: String,
    /// The definition itself, as JSON that the store does not interpret.
    pub value: Value,
}

impl Store {
    /// Stores a definition; one of the same subject and digest is replaced.
    ///
    /// # Errors
    /// [`StoreError::Failed`] if it cannot be written.
    pub fn put_definition(&self, definition: &Definition) -> Result<(), StoreError> {
        self.execute(
            "write a definition",
            "INSERT INTO definition (subject, digest, value) VALUES (?1, ?2, ?3)
             ON CONFLICT (subject, digest) DO UPDATE SET value = excluded.value",
            [
                &definition.subject,
                &definition.digest,
                &definition.value.to_string(),
            ],
        )
    }

    /// Returns all definitions.
    ///
    /// # Errors
    /// [`StoreError::Damaged`] or [`StoreError::Failed`] if they cannot be read.
    pub fn definitions(&self) -> Result<Vec<Definition>, StoreError> {
        let query = "SELECT subject, digest, value FROM definition ORDER BY subject, digest";
        self.rows("read the definitions", query, |row| {
            Ok(Definition {
                subject: row.get(0)?,
                digest: row.get(1)?,
                value: json_at(row, 2, "a definition")?,
            })
        })
    }

    /// Removes these definitions, each by subject and digest; a missing one is not an error.
    ///
    /// # Errors
    /// [`StoreError::Failed`] if that cannot be written.
    pub fn forget_definitions(&self, unused: &[(String, String)]) -> Result<(), StoreError> {
        self.write("forget definitions", |work| {
            for (subject, digest) in unused {
                work.execute(
                    "DELETE FROM definition WHERE subject = ?1 AND digest = ?2",
                    [subject, digest],
                )?;
            }
            Ok(())
        })
    }
}
