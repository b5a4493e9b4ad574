//! Images that are no more, until the registry has deleted what it keeps of them.
//!
//! The transaction that deletes an image writes down where the registry keeps it, so that neither a restart nor a
//! registry that is away makes the cloud forget. Whoever deletes there claims one location at a time: a claim ends by
//! itself, so a replica that is killed holds nothing up.

use std::time::Duration;

use crate::database::Database;
use crate::error::DataError;
use crate::statement::sql;
use crate::write::{WriteResult, Writer};

/// Of a claim. Nobody else tries the location meanwhile.
const CLAIM: Duration = Duration::from_secs(600);

/// Where the registry keeps an image that is no more.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImageGarbage {
    id: i64,
    /// As the row of the image had it: the host of the registry, and the repository.
    pub location: String,
    /// The digest of the manifest that devices pulled, if the row had one.
    pub content_hash: Option<String>,
    /// How often deleting has failed.
    pub failures: u32,
    /// How long ago the image was deleted.
    pub age: Duration,
}

/// Writes down where the registry keeps these images, which are about to go.
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
    /// The location that has been due longest, for the caller alone; none where nothing is due.
    ///
    /// # Errors
    /// Where the database fails.
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
            // Where another replica was faster, the next location may be free.
            if self.execute(&claim).await? == 1 {
                return Ok(Some(garbage));
            }
        }
    }

    /// Whether an image is kept there.
    ///
    /// # Errors
    /// Where the database fails.
    pub async fn is_image_location(&self, location: &str) -> Result<bool, DataError> {
        let select = sql("SELECT id FROM image WHERE is_stored_at__image_location = ?");
        Ok(self.row(&select.with(location)).await?.is_some())
    }

    /// The location is done with, or given up.
    ///
    /// # Errors
    /// Where the database fails.
    pub async fn drop_image_garbage(&self, garbage: &ImageGarbage) -> Result<(), DataError> {
        let delete = sql("DELETE FROM image_garbage WHERE id = ?").with(garbage.id);
        self.execute(&delete).await?;
        Ok(())
    }

    /// The location is due again after this time, having failed so often.
    ///
    /// # Errors
    /// Where the database fails.
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

    /// How many locations wait, and how long ago the image of the oldest was deleted.
    ///
    /// # Errors
    /// Where the database fails.
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
