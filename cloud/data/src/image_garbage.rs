//! Deleted images, until the registry has deleted their data.
//!
//! The transaction that deletes an image records its location in the registry, so that the cloud does not forget it
//! after a restart or while the registry is unavailable. A replica claims one location at a time before it deletes
//! there: a claim expires by itself, so a killed replica blocks nothing.

use std::time::Duration;

use crate::database::Database;
use crate::error::DataError;
use crate::statement::sql;
use crate::write::{WriteResult, Writer};

/// The duration of a claim. Until then, nobody else tries the location.
const CLAIM: Duration = Duration::from_secs(600);

/// The location of a deleted image in the registry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImageGarbage {
    id: i64,
    /// The location from the image's row: the host of the registry, and the repository.
    pub location: String,
    /// The digest of the manifest that devices pulled, if the row had one.
    pub content_hash: Option<String>,
    /// How often deleting has failed.
    pub failures: u32,
    /// How long ago the image was deleted.
    pub age: Duration,
}

/// Records the locations of these images, which are about to be deleted.
pub(crate) async fn note(writer: &mut Writer<'_>, images: &[i64]) -> WriteResult {
    if !writer.environment.deletes_images {
        return Ok(());
    }
    let note = sql(
        "INSERT INTO image_garbage (location, content_hash, gone_at, due_at, failures) \
         SELECT is_stored_at__image_location, content_hash, now_ms(), now_ms(), 0 FROM image WHERE id IN (?) \
         ON CONFLICT DO NOTHING",
    );
    Ok(writer.transaction.execute_about(images, note).await?)
}

impl Database {
    /// Claims the location that has been due longest; `None` if none is due.
    ///
    /// # Errors
    /// If the database fails.
    pub async fn claim_image_garbage(&self) -> Result<Option<ImageGarbage>, DataError> {
        loop {
            let due = sql(
                "SELECT id, location, content_hash, failures, now_ms() - gone_at, due_at FROM image_garbage \
                 WHERE due_at <= now_ms() ORDER BY due_at, id LIMIT 1",
            );
            let Some(row) = self.row(&due).await? else {
                return Ok(None);
            };
            let garbage = ImageGarbage {
                id: row.id(0)?,
                location: row.some_text(1)?,
                content_hash: row.text(2)?,
                failures: u32::try_from(row.id(3)?).unwrap_or(u32::MAX),
                age: Duration::from_millis(u64::try_from(row.id(4)?).unwrap_or_default()),
            };
            let claim =
                sql("UPDATE image_garbage SET due_at = now_ms() + ? WHERE id = ? AND due_at = ?")
                    .with(milliseconds(CLAIM))
                    .with(garbage.id)
                    .with(row.id(5)?);
            // If another replica was faster, the next location may be free.
            if self.execute(&claim).await? == 1 {
                return Ok(Some(garbage));
            }
        }
    }

    /// Returns whether an existing image has this location.
    ///
    /// # Errors
    /// If the database fails.
    pub async fn is_image_location(&self, location: &str) -> Result<bool, DataError> {
        let select = sql("SELECT id FROM image WHERE is_stored_at__image_location = ?");
        Ok(self.row(&select.with(location)).await?.is_some())
    }

    /// Removes a location that is done or given up.
    ///
    /// # Errors
    /// If the database fails.
    pub async fn drop_image_garbage(&self, garbage: &ImageGarbage) -> Result<(), DataError> {
        let delete = sql("DELETE FROM image_garbage WHERE id = ?").with(garbage.id);
        self.execute(&delete).await?;
        Ok(())
    }

    /// Postpones a location by a pause, and sets the number of failures.
    ///
    /// # Errors
    /// If the database fails.
    pub async fn put_off_image_garbage(
        &self,
        garbage: &ImageGarbage,
        pause: Duration,
        failures: u32,
    ) -> Result<(), DataError> {
        let update =
            sql("UPDATE image_garbage SET due_at = now_ms() + ?, failures = ? WHERE id = ?")
                .with(milliseconds(pause))
                .with(i64::from(failures))
                .with(garbage.id);
        self.execute(&update).await?;
        Ok(())
    }

    /// Returns how many locations are waiting, and how long ago the image of the oldest was deleted.
    ///
    /// # Errors
    /// If the database fails.
    pub async fn image_garbage(&self) -> Result<(u64, Duration), DataError> {
        let select =
            sql("SELECT count(*), coalesce(now_ms() - min(gone_at), 0) FROM image_garbage");
        let row = self.row(&select).await?;
        let number = |at| -> Result<u64, DataError> {
            let number = row.as_ref().map(|row| row.id(at)).transpose()?;
            Ok(u64::try_from(number.unwrap_or_default()).unwrap_or_default())
        };
        Ok((number(0)?, Duration::from_millis(number(1)?)))
    }
}

fn milliseconds(time: Duration) -> i64 {
    i64::try_from(time.as_millis()).unwrap_or(i64::MAX)
}
