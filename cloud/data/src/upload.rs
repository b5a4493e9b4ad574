//! Upload of a release's file in parts, for large files: several parts at a time, and each is sent again if it failed.
//!
//! ```text
//! begin   a file without an owner, and a row that describes the complete file
//! part    pieces of the file, by their offsets; a part that is sent again replaces the earlier one
//! commit  a change of the asset takes over the file, like one that was sent in one request
//! ```
//!
//! Anyone who knows the uuid may send parts. An unfinished upload counts towards the organization's quota of bytes, and
//! is deleted after a day, with the file (see [`crate::file`]).

use std::collections::BTreeMap;

use resources::Method;

use crate::database::Database;
use crate::error::DataError;
use crate::file::{self, PIECE};
use crate::quota::{self, Quotas};
use crate::random;
use crate::refusal::{WriteError, WriteResult};
use crate::right::RowRight;
use crate::row::Row;
use crate::statement::sql;
use crate::transaction::Transaction;

/// The file to be uploaded, as announced.
#[derive(Debug, Clone)]
pub struct Announcement {
    /// Its name, according to its sender.
    pub filename: String,
    /// Its media type.
    pub content_type: String,
    /// Its size in bytes.
    pub size: u64,
    /// The size in bytes of each part except the last: a multiple of [`PIECE`].
    pub chunk_size: u64,
}

/// An upload in progress.
#[derive(Debug, Clone)]
pub struct Upload {
    id: i64,
    /// The secret that authorizes a client to send parts.
    pub uuid: String,
    /// The number of the file that is being created.
    pub file: i64,
    /// The `release_asset` that it is for.
    pub asset: i64,
    /// The file as announced.
    pub announced: Announcement,
}

impl Announcement {
    /// Returns the number of parts.
    #[must_use]
    pub fn parts(&self) -> u64 {
        self.size.div_ceil(self.chunk_size.max(1))
    }

    /// Returns the size in bytes of a part; parts are numbered from 1.
    #[must_use]
    pub fn bytes_of(&self, part: u64) -> Option<u64> {
        let before = part.checked_sub(1)?.checked_mul(self.chunk_size)?;
        let left = self.size.checked_sub(before).filter(|left| *left > 0)?;
        Some(left.min(self.chunk_size))
    }

    /// Returns the range of a part's pieces in the file: the number of the first, and the one after the last.
    fn pieces(&self, part: u64) -> Option<(i64, i64)> {
        let first = part.checked_sub(1)?.checked_mul(self.chunk_size)? / PIECE as u64;
        let behind = first + self.bytes_of(part)?.div_ceil(PIECE as u64);
        Some((i64::try_from(first).ok()?, i64::try_from(behind).ok()?))
    }
}

/// Ends the upload of a file; returns the digests of the complete parts, by their numbers.
///
/// A client that starts to send one of them again at this moment either did so before, and then the part is not
/// included, or finds no upload.
///
/// # Errors
/// If the database fails.
pub(crate) async fn end(
    transaction: &mut Transaction,
    file: i64,
) -> Result<BTreeMap<u64, String>, DataError> {
    let parts = sql(
        "DELETE FROM release_asset_part WHERE upload IN (SELECT id FROM release_asset_upload WHERE file = ?) \
         RETURNING number, etag",
    );
    let parts = transaction.rows(&parts.with(file)).await?;
    let upload = sql("DELETE FROM release_asset_upload WHERE file = ?");
    transaction.execute(&upload.with(file)).await?;
    digests(&parts)
}

/// Returns the digests, by number, of those rows that have one.
fn digests(parts: &[Row]) -> Result<BTreeMap<u64, String>, DataError> {
    let mut digests = BTreeMap::new();
    for part in parts {
        if let Some(digest) = part.text(1)? {
            digests.insert(u64::try_from(part.id(0)?).unwrap_or_default(), digest);
        }
    }
    Ok(digests)
}

/// One attempt to send a part. A later attempt for the same part ends it.
#[derive(Debug)]
pub struct PartWriter {
    file: i64,
    part: i64,
    attempt: i64,
    /// The number of the next piece; `end` is the first after the part.
    next: i64,
    end: i64,
}

impl Database {
    /// Begins an upload for an asset that the caller may change, and replaces an earlier one.
    ///
    /// # Errors
    /// [`WriteError::Forbidden`] if the organization would exceed its quota; if the database fails.
    pub async fn begin_upload(
        &self,
        quotas: &Quotas,
        right: &RowRight,
        announced: Announcement,
        now: i64,
    ) -> WriteResult<Upload> {
        let asset = right.id();
        if !right.is_to(Method::Update, "release_asset", asset) {
            return Err(WriteError::NoRights);
        }
        let uuid = random::uuid()?;
        let number = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
        let mut transaction = self.begin().await?;
        let before = sql(
            "DELETE FROM release_asset_file WHERE release_asset IS NULL AND id IN \
             (SELECT file FROM release_asset_upload WHERE release_asset = ?)",
        );
        transaction.execute(&before.with(asset)).await?;
        let file = file::begin(&mut transaction, now).await?;
        let insert = sql(
            "INSERT INTO release_asset_upload (uuid, file, release_asset, filename, content_type, size, \
             chunk_size) VALUES (?, ?, ?, ?, ?, ?, ?) RETURNING id",
        );
        let insert = insert
            .with(uuid.clone())
            .with(file)
            .with(asset)
            .with(announced.filename.clone())
            .with(announced.content_type.clone())
            .with(number(announced.size))
            .with(number(announced.chunk_size));
        let id = transaction.new_id(&insert).await?;
        quota::check(&mut transaction, quotas, "release_asset", asset).await?;
        transaction.commit().await?;
        Ok(Upload {
            id,
            uuid,
            file,
            asset,
            announced,
        })
    }

    /// Returns the upload with this uuid.
    ///
    /// # Errors
    /// If the database fails.
    pub async fn upload(&self, uuid: &str) -> Result<Option<Upload>, DataError> {
        let select = sql(
            "SELECT id, file, release_asset, filename, content_type, size, chunk_size \
             FROM release_asset_upload WHERE uuid = ?",
        );
        let Some(row) = self.row(&select.with(uuid)).await? else {
            return Ok(None);
        };
        let number = |at| Ok::<_, DataError>(u64::try_from(row.id(at)?).unwrap_or_default());
        Ok(Some(Upload {
            id: row.id(0)?,
            uuid: uuid.to_owned(),
            file: row.id(1)?,
            asset: row.id(2)?,
            announced: Announcement {
                filename: row.some_text(3)?,
                content_type: row.some_text(4)?,
                size: number(5)?,
                chunk_size: number(6)?,
            },
        }))
    }

    /// Begins to receive a part, and deletes what was received of it before. `None` if there is no such part, or the
    /// upload has just ended.
    ///
    /// # Errors
    /// If the database fails.
    pub async fn begin_part(
        &self,
        upload: &Upload,
        number: u64,
    ) -> Result<Option<PartWriter>, DataError> {
        let Some((next, end)) = upload.announced.pieces(number) else {
            return Ok(None);
        };
        let part = i64::try_from(number).unwrap_or(i64::MAX);
        let mut transaction = self.begin().await?;
        let insert = sql(
            "INSERT INTO release_asset_part (upload, number, attempt) VALUES (?, ?, 1) \
             ON CONFLICT (upload, number) DO UPDATE SET attempt = release_asset_part.attempt + 1, etag = NULL \
             RETURNING id, attempt",
        );
        let insert = insert.with(upload.id).with(part);
        let row = match transaction.row(&insert).await {
            Err(DataError::ForeignKey) => return Ok(None),
            row => row?,
        };
        let row = row.ok_or_else(DataError::no_id)?;
        let (part, attempt) = (row.id(0)?, row.id(1)?);
        let pieces =
            sql("DELETE FROM release_asset_piece WHERE file = ? AND number >= ? AND number < ?");
        let pieces = pieces.with(upload.file).with(next).with(end);
        transaction.execute(&pieces).await?;
        transaction.commit().await?;
        Ok(Some(PartWriter {
            file: upload.file,
            part,
            attempt,
            next,
            end,
        }))
    }

    /// Adds the next piece of a part: [`PIECE`] bytes, or the rest at the end of the file. Returns false if the part is
    /// being sent again, or the upload has ended; on PostgreSQL that may be noticed only when both attempts reach the
    /// same piece.
    ///
    /// # Errors
    /// If the database fails.
    pub async fn add_part_piece(
        &self,
        writer: &mut PartWriter,
        bytes: &[u8],
    ) -> Result<bool, DataError> {
        if writer.next >= writer.end {
            return Ok(false);
        }
        let insert = sql("INSERT INTO release_asset_piece (file, number, bytes) \
             SELECT ?, ?, ? WHERE EXISTS (SELECT 1 FROM release_asset_part WHERE id = ? AND attempt = ?) \
             ON CONFLICT (file, number) DO NOTHING");
        let insert = insert
            .with(writer.file)
            .with(writer.next)
            .with(bytes.to_vec())
            .with(writer.part)
            .with(writer.attempt);
        writer.next += 1;
        match self.execute(&insert).await {
            Err(DataError::ForeignKey) => Ok(false),
            added => Ok(added? == 1),
        }
    }

    /// Marks the part as complete, with this digest. Returns false as [`Database::add_part_piece`] does.
    ///
    /// # Errors
    /// If the database fails.
    pub async fn end_part(&self, writer: PartWriter, etag: &str) -> Result<bool, DataError> {
        let update = sql("UPDATE release_asset_part SET etag = ? WHERE id = ? AND attempt = ?");
        let update = update.with(etag).with(writer.part).with(writer.attempt);
        Ok(writer.next == writer.end && self.execute(&update).await? == 1)
    }

    /// Returns the digests of the complete parts, by their numbers.
    ///
    /// # Errors
    /// If the database fails.
    pub async fn whole_parts(&self, upload: &Upload) -> Result<BTreeMap<u64, String>, DataError> {
        let select = sql("SELECT number, etag FROM release_asset_part WHERE upload = ?");
        digests(&self.rows(&select.with(upload.id)).await?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_parted_into_pieces() {
        let announced = Announcement {
            filename: "a".to_owned(),
            content_type: "b".to_owned(),
            size: 5 * PIECE as u64 + 7,
            chunk_size: 2 * PIECE as u64,
        };
        assert_eq!(announced.parts(), 3);
        let parts = [1, 2, 3].map(|part| (announced.bytes_of(part), announced.pieces(part)));
        let two = 2 * PIECE as u64;
        assert_eq!(
            parts,
            [
                (Some(two), Some((0, 2))),
                (Some(two), Some((2, 4))),
                (Some(PIECE as u64 + 7), Some((4, 6))),
            ]
        );
        for part in [0, 4, u64::MAX] {
            assert_eq!(
                (announced.bytes_of(part), announced.pieces(part)),
                (None, None)
            );
        }
    }
}
