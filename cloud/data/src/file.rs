//! Files beside releases: kept in the database, in pieces, so that every replica has them and a backup holds them.
//!
//! A file is written piece by piece, each in a transaction of its own: whoever uploads slowly keeps nobody from
//! writing. It is nobody's until a change of a `release_asset` takes it ([`crate::write::Write::file`]), and goes with
//! that row. One that nobody takes is dropped after a while.

use std::collections::BTreeMap;

use resources::Method;

use crate::database::Database;
use crate::error::DataError;
use crate::right::RowRight;
use crate::statement::sql;
use crate::transaction::Transaction;

/// Bytes of each piece of a file but the last.
pub const PIECE: usize = 256 << 10;

/// The path and the query by which a file is downloaded: its number, and a key of its own. Clients send no credential
/// to the address that a row gives, so it has to do by itself.
#[must_use]
pub fn path(file: i64, key: &str) -> String {
    format!("/release-asset/v1/{file}?key={key}")
}

/// A file that was uploaded, as a change takes it.
#[derive(Debug, Clone)]
pub struct File {
    /// Its number.
    pub id: i64,
    /// As its sender calls it.
    pub filename: Option<String>,
    /// Its media type.
    pub content_type: String,
    /// What browsers are told to do with it.
    pub content_disposition: String,
    /// Bytes.
    pub size: u64,
    /// Where it came in parts: the digest of each, by its number. The change is refused where they are others by then.
    pub parts: Option<BTreeMap<u64, String>>,
}

/// That somebody may read a file: the address that they have is the one that its row gives, or they have the right to
/// read that row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileRight {
    file: i64,
}

impl FileRight {
    /// By an address with this key, where it is `href`, as the file's row gives it.
    #[must_use]
    pub fn by_address(file: i64, key: &str, href: &str) -> Option<Self> {
        (href == path(file, key)).then_some(FileRight { file })
    }

    /// By the right to read the row of `release_asset` of this number, which the file is of.
    #[must_use]
    pub fn by_row(file: i64, asset: i64, right: &RowRight) -> Option<Self> {
        let may = right.is_to(Method::Read, "release_asset", asset);
        may.then_some(FileRight { file })
    }
}

/// A new file, as [`Database::begin_file`] makes one.
///
/// # Errors
/// Where the database fails.
pub(crate) async fn begin(transaction: &mut Transaction, now: i64) -> Result<i64, DataError> {
    let insert = sql("INSERT INTO release_asset_file (created_at) VALUES (?) RETURNING id");
    transaction.new_id(&insert.with(now)).await
}

impl Database {
    /// A new file, of nobody and empty; its number. `now` is in milliseconds.
    ///
    /// # Errors
    /// Where the database fails.
    pub async fn begin_file(&self, now: i64) -> Result<i64, DataError> {
        let mut transaction = self.begin().await?;
        let id = begin(&mut transaction, now).await?;
        transaction.commit().await?;
        Ok(id)
    }

    /// The piece of this number, from 0.
    ///
    /// # Errors
    /// Where the database fails, and where the file is gone.
    pub async fn add_piece(&self, file: i64, number: i64, bytes: &[u8]) -> Result<(), DataError> {
        let insert = sql("INSERT INTO release_asset_piece (file, number, bytes) VALUES (?, ?, ?)");
        let insert = insert.with(file).with(number).with(bytes.to_vec());
        self.execute(&insert).await?;
        Ok(())
    }

    /// The bytes of a piece, where the file (still) has it.
    ///
    /// # Errors
    /// Where the database fails.
    pub async fn piece(&self, right: FileRight, number: i64) -> Result<Option<Vec<u8>>, DataError> {
        let select = sql("SELECT bytes FROM release_asset_piece WHERE file = ? AND number = ?");
        let row = self.row(&select.with(right.file).with(number)).await?;
        row.map(|row| row.bytes(0)).transpose()
    }

    /// Drops a file that no row has taken.
    ///
    /// # Errors
    /// Where the database fails.
    pub async fn drop_file(&self, file: i64) -> Result<(), DataError> {
        let delete =
            sql("DELETE FROM release_asset_file WHERE id = ? AND release_asset IS NULL").with(file);
        self.execute(&delete).await?;
        Ok(())
    }

    /// Drops the files that were begun before `since` (in milliseconds) and that no row has taken; how many.
    ///
    /// # Errors
    /// Where the database fails.
    pub async fn drop_abandoned_files(&self, since: i64) -> Result<u64, DataError> {
        let delete =
            sql("DELETE FROM release_asset_file WHERE release_asset IS NULL AND created_at < ?");
        self.execute(&delete.with(since)).await
    }
}
