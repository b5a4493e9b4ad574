//! Free pages of the file are returned to the file system, step by step.

use std::sync::atomic::Ordering;

use sqlx::Connection as _;

use super::{SharedWriter, SqliteWriter, WriterTurn};
use crate::error::DataError;
use crate::sqlite;

/// Free pages that stay in the file for later writes: 4 MiB.
const KEPT_FREE: i64 = 1024;
/// Pages that are released at once: moving them takes a few milliseconds, during which a write may have to wait.
const STEP: i64 = 128;
const GIVE_BACK: &str = "PRAGMA incremental_vacuum(128)";

impl SqliteWriter {
    /// Releases some free pages to the file system, unless somebody writes or waits to; returns whether there are more.
    ///
    /// The file itself is truncated when there are no more. A reader may delay that: the next call tries again.
    ///
    /// # Errors
    /// If that fails.
    pub(crate) async fn shrink(&self) -> Result<bool, DataError> {
        let shared = self.shared.clone();
        if !shared.gives_back {
            return Ok(false);
        }
        if shared.waiting.load(Ordering::Relaxed) > 0 {
            return Ok(true);
        }
        let Ok(state) = shared.state.clone().try_lock_owned() else {
            return Ok(true);
        };
        let mut turn = WriterTurn::begun(shared, state).await?;
        let free = sqlite::number(turn.connection()?, "PRAGMA freelist_count").await?;
        if free > KEPT_FREE {
            sqlx::query(GIVE_BACK).execute(turn.connection()?).await?;
            self.shared.is_to_be_cut.store(true, Ordering::Relaxed);
            turn.commit_detached().await?;
            if free > KEPT_FREE + STEP {
                return Ok(true);
            }
        } else {
            turn.rollback().await;
        }
        if self.shared.is_to_be_cut.load(Ordering::Relaxed) && self.shared.cut().await? {
            self.shared.is_to_be_cut.store(false, Ordering::Relaxed);
        }
        Ok(false)
    }
}

impl SharedWriter {
    /// Writes the log back to the file, which truncates the file; returns whether all was written back. Otherwise that
    /// happens only with some later write, and there may be none.
    async fn cut(&self) -> Result<bool, DataError> {
        // The writer's connection may be in a transaction.
        let mut connection = sqlite::connect(&self.options).await?;
        let checkpoint = sqlx::query_as("PRAGMA wal_checkpoint(PASSIVE)");
        let (is_busy, in_the_log, brought): (i64, i64, i64) =
            checkpoint.fetch_one(&mut connection).await?;
        connection.close().await?;
        Ok(is_busy == 0 && in_the_log == brought)
    }
}
