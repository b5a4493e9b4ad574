//! What containers, volumes and networks were made from. The target moves on before they do, and what is
//! there cannot be read back from an engine.

use serde_json::Value;

use crate::rows::json_at;
use crate::{Store, StoreError};

/// One of them. Whose it is is for the reconciler to say; this only keeps it.
#[derive(Debug, Clone, PartialEq)]
pub struct Definition {
    /// What was made from it, as the reconciler names it; one subject may have several digests.
    pub subject: String,
    /// Of the configuration, as it is in the labels of what was made from it.
    pub digest: String,
    /// The definition itself, as JSON that is not looked at.
    pub value: Value,
}

impl Store {
    /// Keeps a definition; one of the same subject and digest is replaced.
    ///
    /// # Errors
    /// [`StoreError::Failed`] where it cannot be written.
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

    /// All of them.
    ///
    /// # Errors
    /// [`StoreError::Damaged`] or [`StoreError::Failed`] where they cannot be read.
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

    /// Forgets these, each by subject and digest; one that is not there is no error.
    ///
    /// # Errors
    /// [`StoreError::Failed`] where that cannot be written.
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
