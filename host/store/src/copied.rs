//! A database whose disk accepts no writes, because it is full or read-only: SQLite cannot open it, but the device has
//! to start anyway. A copy elsewhere is opened instead, which is read and never written. The first write that the disk
//! accepts again goes to the database itself, which still equals the copy.

use std::io;
use std::path::{Path, PathBuf};

use secure_fs::{Access, DirError, SecureDir};

use crate::database_files::{COMPANIONS, FILE_NAME};
use crate::error::StoreError;

/// The folder of the copy, below a folder on another disk, or in memory.
const FOLDER: &str = "store-copy";
/// The longest file that is copied, in bytes: the copy may be in memory. A store has some hundred kilobytes.
const LONGEST: u64 = 64 << 20;
/// The size of a trial write that shows whether the disk accepts writes, in bytes: more than SQLite needs to open a
/// database.
const TRIAL: usize = 128 << 10;
/// The name of the file for the trial write, which is removed at once.
const TRIAL_NAME: &str = "is-there-room";

/// Returns whether the error means that a disk is full or accepts no writes; other errors are no reason for a copy.
pub(crate) fn refuses_writes(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::StorageFull
            | io::ErrorKind::ReadOnlyFilesystem
            | io::ErrorKind::QuotaExceeded
    )
}

/// Returns the reason why the state folder cannot be written to; `None` if it can.
pub(crate) fn why_unwritable(folder: &Path) -> Option<io::Error> {
    let tried = SecureDir::existing(folder, Access::Private)
        .map_err(io::Error::from)
        .and_then(|folder| folder.ok_or_else(|| io::ErrorKind::NotFound.into()))
        .and_then(|folder| {
            let written = folder.replace(TRIAL_NAME, &[0; TRIAL]);
            let _ = folder.remove(TRIAL_NAME);
            written
        });
    tried.err().filter(refuses_writes)
}

/// Copies the database at `path`, including the log that SQLite has not merged into it yet, below `to`. The caller
/// holds the lock of its folder.
///
/// # Errors
/// [`StoreError::File`]
pub(crate) fn copy(path: &Path, to: &SecureDir) -> Result<PathBuf, StoreError> {
    let from = path.parent().unwrap_or(path);
    let from =
        opened(SecureDir::open(from, Access::Private)).map_err(StoreError::file("open", from))?;
    let folder =
        opened(to.dir(FOLDER, Access::Private)).map_err(StoreError::file("open", to.path()))?;
    for companion in COMPANIONS {
        let name = format!("{FILE_NAME}{companion}");
        let at = folder.path().join(&name);
        folder
            .remove(&name)
            .map_err(StoreError::file("remove", &at))?;
        // Shared memory is created again.
        if companion == "-shm" {
            continue;
        }
        let bytes = from.read(&name, LONGEST);
        if let Some(bytes) = bytes.map_err(StoreError::file("copy", &from.path().join(&name)))? {
            folder
                .replace(&name, &bytes)
                .map_err(StoreError::file("write", &at))?;
        }
    }
    Ok(folder.path().join(FILE_NAME))
}

fn opened(folder: Result<SecureDir, DirError>) -> io::Result<SecureDir> {
    folder.map_err(io::Error::from)
}
