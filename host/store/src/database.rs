//! The connection to a database, which is checked first, and created if there is none.

use std::fs::{self, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::{Connection, ErrorCode, OpenFlags};

use crate::aside::{remove_old_asides, set_aside};
use crate::copied;
use crate::database_files::{COMPANIONS, LOGS, beside, sync_folder_of, unless_missing};
use crate::error::StoreError;
use crate::identity::Identity;
use crate::migrations::{known_version, migrate};
use crate::remembered::DeviceUuids;

/// The size of a database's header, in bytes.
const HEADER: u64 = 100;
/// How long a statement waits for another process (`supervisor api-key show` reads while we run).
const BUSY: Duration = Duration::from_secs(5);

/// A sound database and the data that was already read from it.
pub(crate) struct LoadedDatabase {
    pub(crate) connection: Connection,
    pub(crate) identity: Identity,
}

/// Opens the database, and sets it aside if it is corrupt; the new one then belongs to `known`.
pub(crate) fn open_database(
    path: &Path,
    known: Option<&DeviceUuids>,
) -> Result<(LoadedDatabase, Option<PathBuf>), StoreError> {
    match connect(path, known) {
        Ok(loaded) => Ok((loaded, None)),
        Err(OpenFailure::Other(error)) => Err(error),
        Err(OpenFailure::Corrupt(reason)) => {
            let aside = set_aside(path)?;
            tracing::error!(
                path = %path.display(),
                aside = %aside.display(),
                "`{}` is corrupt ({reason}): it was set aside as `{}`, and the device begins with an empty store",
                path.display(),
                aside.display()
            );
            remove_old_asides(path);
            // The file is new: if it is corrupt too, the disk is at fault, not its previous contents.
            let loaded = connect(path, known);
            let loaded =
                loaded.map_err(|error| error.into_error("begin an empty store in", path))?;
            Ok((loaded, Some(aside)))
        }
    }
}

/// Opens a copy of a sound database, only for reading.
pub(crate) fn connect_copy(path: &Path) -> Result<LoadedDatabase, StoreError> {
    let unusable = |error: OpenFailure| error.into_error("read the copy", path);
    fs::symlink_metadata(path).map_err(StoreError::file("look at", path))?;
    let loaded = connect(path, None).map_err(unusable)?;
    let read_only = loaded.connection.pragma_update(None, "query_only", true);
    read_only.map_err(|error| unusable(OpenFailure::because(path, error)))?;
    Ok(loaded)
}

/// Opens the database at `path` once its disk accepts writes again; it still equals the copy that was read.
///
/// # Errors
/// [`StoreError::File`] if the disk still accepts none, else as [`crate::Store::open`].
pub(crate) fn reconnect(path: &Path) -> Result<Connection, StoreError> {
    let folder = path.parent().unwrap_or(path);
    if let Some(why) = copied::why_unwritable(folder) {
        return Err(StoreError::file("write into", folder)(why));
    }
    let loaded = connect(path, None).map_err(|error| error.into_error("open", path))?;
    Ok(loaded.connection)
}

/// The reason why a file cannot be opened in its current state.
enum OpenFailure {
    /// It is not a sound database of ours.
    Corrupt(String),
    /// The contents are not at fault.
    Other(StoreError),
}

impl OpenFailure {
    /// Converts to the error for cases in which nothing is set aside, with the action on the file at `path`.
    fn into_error(self, action: &'static str, path: &Path) -> StoreError {
        match self {
            OpenFailure::Corrupt(reason) => {
                StoreError::file(action, path)(io::Error::other(reason))
            }
            OpenFailure::Other(error) => error,
        }
    }

    /// Interprets the failure of a statement on the file at `path`.
    fn because(path: &Path, error: rusqlite::Error) -> OpenFailure {
        match error {
            // A statement of ours does not match the existing tables.
            rusqlite::Error::SqlInputError { msg, .. } => OpenFailure::Corrupt(msg),
            rusqlite::Error::SqliteFailure(code, Some(msg)) if code.code == ErrorCode::Unknown => {
                OpenFailure::Corrupt(msg)
            }
            error
                if matches!(
                    error.sqlite_error_code(),
                    Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase)
                ) =>
            {
                OpenFailure::Corrupt(error.to_string())
            }
            source => OpenFailure::Other(StoreError::Open {
                path: path.to_owned(),
                source,
            }),
        }
    }
}

/// Opens and checks the database, and creates it if there is none; the new one then belongs to `known`.
fn connect(path: &Path, known: Option<&DeviceUuids>) -> Result<LoadedDatabase, OpenFailure> {
    match fs::symlink_metadata(path) {
        // SQLite treats an empty file as a new database, and a file of one byte as an empty one. Such a file was
        // truncated: ours have their header.
        Ok(found) if found.is_file() && found.len() < HEADER => {
            return Err(OpenFailure::Corrupt("the file has no header".into()));
        }
        Ok(_) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            make(path)?;
        }
        Err(error) => return Err(OpenFailure::Other(StoreError::file("look at", path)(error))),
    }
    let because = |error| OpenFailure::because(path, error);
    let (mut connection, found) = prepare(path).map_err(because)?;
    if found > known_version() {
        return Err(OpenFailure::Other(StoreError::Newer {
            path: path.to_owned(),
            found,
            known: known_version(),
        }));
    }
    if let Some(reason) = fault(&connection, path).map_err(because)? {
        return Err(OpenFailure::Corrupt(reason));
    }
    // The uuid and the keys are essential to the device, so a file without them does not count as sound.
    match Identity::load(&mut connection, known) {
        Ok(identity) => {
            write_log_into_file(&connection);
            Ok(LoadedDatabase {
                connection,
                identity,
            })
        }
        Err(damaged @ StoreError::Damaged { .. }) => Err(OpenFailure::Corrupt(damaged.to_string())),
        Err(other) => Err(OpenFailure::Other(other)),
    }
}

/// Merges the log into the file, from which [`crate::read_global_key`] reads if nothing can be written. A failure does
/// not matter: SQLite does it eventually.
pub(crate) fn write_log_into_file(connection: &Connection) {
    let written = connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()));
    if let Err(error) = written {
        tracing::debug!(%error, "the store's log has not been merged into its file yet");
    }
}

/// Creates an empty database, completely or not at all: under another name first, so a file with the real name has
/// always been a valid database once.
fn make(path: &Path) -> Result<(), OpenFailure> {
    let new = beside(path, ".new");
    let other =
        |action, path| move |error| OpenFailure::Other(StoreError::file(action, path)(error));
    let left_over = COMPANIONS.map(|companion| beside(&new, companion));
    // A log without its database would be mistaken for the new one's.
    let logs = LOGS.map(|companion| beside(path, companion));
    for file in left_over.iter().chain(&logs) {
        unless_missing(fs::remove_file(file)).map_err(other("remove", file))?;
    }
    // SQLite creates files according to the umask; this one is only for its owner.
    OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&new)
        .map_err(other("make", path))?;
    let (connection, _) = prepare(&new).map_err(|error| OpenFailure::because(&new, error))?;
    // The last connection to close merges the log into the file and removes it.
    connection
        .close()
        .map_err(|(_, error)| OpenFailure::because(&new, error))?;
    fs::rename(&new, path).map_err(other("make", path))?;
    sync_folder_of(path).map_err(OpenFailure::Other)
}

fn prepare(path: &Path) -> rusqlite::Result<(Connection, i64)> {
    let mut connection = Connection::open_with_flags(
        path,
        OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX,
    )?;
    connection.busy_timeout(BUSY)?;
    connection.pragma_update(None, "trusted_schema", false)?;
    connection.pragma_update(None, "cell_size_check", true)?;
    connection.pragma_update(None, "journal_mode", "WAL")?;
    connection.pragma_update(None, "synchronous", "FULL")?;
    // Kibibytes: the whole store is small, and the supervisor is meant to be.
    connection.pragma_update(None, "cache_size", -512)?;
    // The size in bytes to which a long log is cut.
    connection.pragma_update(None, "journal_size_limit", 1 << 20)?;
    let found = migrate(&mut connection)?;
    Ok((connection, found))
}

/// Returns the fault of the file, if there is one: it must be undamaged and have our tables.
fn fault(connection: &Connection, path: &Path) -> rusqlite::Result<Option<String>> {
    // SQLite reads a truncated last page as if zeros followed. After the log is merged into the file, every page of it
    // is complete.
    connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))?;
    let page: i64 = connection.query_row("PRAGMA page_size", [], |row| row.get(0))?;
    let length = fs::metadata(path).map_or(0, |found| found.len());
    if u64::try_from(page).is_ok_and(|page| !length.is_multiple_of(page)) {
        return Ok(Some("the last page is cut off".into()));
    }
    let verdict: String = connection.query_row("PRAGMA quick_check(1)", [], |row| row.get(0))?;
    if verdict != "ok" {
        return Ok(Some(verdict));
    }
    for statement in [
        "SELECT name, value FROM setting LIMIT 0",
        "SELECT app, service, key FROM api_key LIMIT 0",
        "SELECT source, state FROM target LIMIT 0",
        "SELECT app, release FROM running_release LIMIT 0",
        "SELECT key, value FROM config LIMIT 0",
        "SELECT reference, app, app_id, service, image_id FROM image LIMIT 0",
        "SELECT number, kind, key, value FROM intent LIMIT 0",
        "SELECT plugin, key, value FROM plugin_data LIMIT 0",
    ] {
        connection.prepare(statement)?;
    }
    Ok(None)
}
