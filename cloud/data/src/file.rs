//! Files attached to releases: stored in the database, in pieces, so that every replica has access and backups include
//! them.
//!
//! A file is written piece by piece, each in its own transaction, so a slow upload does not block other writes. It has
//! no owner until a change of a `release_asset` claims it ([`crate::write::Write::file`]), and is deleted with that
//! row. A file that is never claimed is deleted after a while.

use std::collections::BTreeMap;

use resources::Method;

use crate::database::Database;
use crate::error::DataError;
use crate::right::RowRight;
use crate::statement::sql;
use crate::transaction::Transaction;

/// The size in bytes of each piece of a file except the last.
pub const PIECE: usize = 256 << 10;

/// Returns the path and query for downloading a file: its number, and a key of its own. Clients send no credential to
/// the address in a row, so it must be sufficient by itself.
#[must_use]
pub fn path(file: i64, key: &str) -> String {
    format!("/release-asset/v1/{file}?key={key}")
}

/// An uploaded file that a change can claim.
#[derive(Debug, Clone)]
pub struct File {
    /// Its number.
    pub id: i64,
    /// Its name, according to its sender.
    pub filename: Option<String>,
    /// Its media type.
    pub content_type: String,
    /// The `Content-Disposition` sent to browsers.
    pub content_disposition: String,
    /// Its size in bytes.
    pub size: u64,
    /// If it was uploaded in parts: the digest of each, by its number. The change is refused if they differ by then.
    pub parts: Option<BTreeMap<u64, String>>,
}

/// Proof of the right to read a file: the caller has the address from the file's row, or may read that row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileRight {
    file: i64,
}

impl FileRight {
    /// Grants the right by an address with this key, if it equals `href` in the file's row.
    #[must_use]
    pub fn by_address(file: i64, key: &str, href: &str) -> Option<Self> {
        (href == path(file, key)).then_some(FileRight { file })
    }

    /// Grants the right by the right to read the file's row, the `release_asset` with this number.
    #[must_use]
    pub fn by_row(file: i64, asset: i64, right: &RowRight) -> Option<Self> {
        let may = right.is_to(Method::Read, "release_asset", asset);
        may.then_some(FileRight { file })
    }
}

/// Creates a file, for [`Database::begin_file`].
///
/// # Errors
/// If the database fails.
pub(crate) async fn begin(transaction: &mut Transaction, now: i64) -> Result<i64, DataError> {
    let insert = sql("INSERT INTO release_asset_file (created_at) VALUES (?) RETURNING id");
    transaction.new_id(&insert.with(now)).await
}

impl Database {
    /// Creates an empty file without an owner, and returns its number. `now` is in milliseconds.
    ///
    /// # Errors
    /// If the database fails.
    pub async fn begin_file(&self, now: i64) -> Result<i64, DataError> {
        let mut transaction = self.begin().await?;
        let id = begin(&mut transaction, now).await?;
        transaction.commit().await?;
        Ok(id)
    }

    /// Adds the piece with this number, counted from 0.
    ///
    /// # Errors
    /// If the database fails, or the file no longer exists.
    pub async fn add_piece(&self, file: i64, number: i64, bytes: &[u8]) -> Result<(), DataError> {
        let insert = sql("INSERT INTO release_asset_piece (file, number, bytes) VALUES (?, ?, ?)");
        let insert = insert.with(file).with(number).with(bytes.to_vec());
        self.execute(&insert).await?;
        Ok(())
    }

    /// Returns the bytes of a piece, if the file (still) has it.
    ///
    /// # Errors
    /// If the database fails.
    pub async fn piece(&self, right: FileRight, number: i64) -> Result<Option<Vec<u8>>, DataError> {
        let select = sql("SELECT bytes FROM release_asset_piece WHERE file = ? AND number = ?");
        let row = self.row(&select.with(right.file).with(number)).await?;
        row.map(|row| row.bytes(0)).transpose()
    }

    /// Deletes a file that no row has claimed.
    ///
    /// # Errors
    /// If the database fails.
    pub async fn drop_file(&self, file: i64) -> Result<(), DataError> {
        let delete =
            sql("DELETE FROM release_asset_file WHERE id = ? AND release_asset IS NULL").with(file);
        self.execute(&delete).await?;
        Ok(())
    }

    /// Deletes files that were begun before `since` (in milliseconds) and that no row has claimed; returns how many.
    ///
    /// # Errors
    /// If the database fails.
    pub async fn drop_abandoned_files(&self, since: i64) -> Result<u64, DataError> {
        let delete =
            sql("DELETE FROM release_asset_file WHERE release_asset IS NULL AND created_at < ?");
        self.execute(&delete.with(since)).await
    }
}
