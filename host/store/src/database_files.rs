//! The files of the database.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use crate::error::StoreError;

/// The database's name within the state folder.
pub const FILE_NAME: &str = "store.db";

/// The suffixes of a database and the files that SQLite keeps next to it.
pub(crate) const COMPANIONS: [&str; 3] = ["", "-wal", "-shm"];
pub(crate) const LOGS: [&str; 2] = ["-wal", "-shm"];

/// Makes a rename in the folder reach the disk.
pub(crate) fn sync_folder_of(path: &Path) -> Result<(), StoreError> {
    match path.parent() {
        None => Ok(()),
        Some(folder) => File::open(folder)
            .and_then(|folder| folder.sync_all())
            .map_err(StoreError::file("write", folder)),
    }
}

/// Returns the result for a file that may be missing.
pub(crate) fn unless_missing(result: io::Result<()>) -> io::Result<()> {
    match result {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

/// Returns the path of the file next to `path` whose name ends with `suffix` in addition.
pub(crate) fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}
