//! What containers, volumes and networks were made from. The target moves on before they do, and what is
//! there cannot be read back from an engine.

use serde_json::Value;

use crate::targets::parse;
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
        const ACTION: &str = "write a definition";
        self.write(ACTION, |work| {
            work.execute(
                "INSERT INTO definition (subject, digest, value) VALUES (?1, ?2, ?3)
                 ON CONFLICT (subject, digest) DO UPDATE SET value = excluded.value",
                [
                    &definition.subject,
                    &definition.digest,
                    &definition.value.to_string(),
                ],
            )
            .map(drop)
            .map_err(StoreError::failed(ACTION))
        })
    }

    /// All of them.
    ///
    /// # Errors
    /// [`StoreError::Damaged`] or [`StoreError::Failed`] where they cannot be read.
    pub fn definitions(&self) -> Result<Vec<Definition>, StoreError> {
        let failed = || StoreError::failed("read the definitions");
        let connection = self.connection();
        let mut statement = connection
            .prepare("SELECT subject, digest, value FROM definition ORDER BY subject, digest")
            .map_err(failed())?;
        let rows = statement
            .query_map([], |row| {
                Ok((
                    row.get::<_, String>(0)?,
                    row.get::<_, String>(1)?,
                    row.get::<_, String>(2)?,
                ))
            })
            .map_err(failed())?;
        let mut definitions = Vec::new();
        for row in rows {
            let (subject, digest, value) = row.map_err(failed())?;
            definitions.push(Definition {
                subject,
                digest,
                value: parse("a definition", &value)?,
            });
        }
        Ok(definitions)
    }

    /// Forgets these, each by subject and digest; one that is not there is no error.
    ///
    /// # Errors
    /// [`StoreError::Failed`] where that cannot be written.
    pub fn forget_definitions(&self, gone: &[(String, String)]) -> Result<(), StoreError> {
        const ACTION: &str = "forget definitions";
        self.write(ACTION, |work| {
            for (subject, digest) in gone {
                work.execute(
                    "DELETE FROM definition WHERE subject = ?1 AND digest = ?2",
                    [subject, digest],
                )
                .map_err(StoreError::failed(ACTION))?;
            }
            Ok(())
        })
    }
}
