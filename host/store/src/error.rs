//! Reasons why the store did not carry out an operation.

use std::path::{Path, PathBuf};

use rusqlite::ErrorCode;

/// Failures of the store. A corrupt file at the start is not among them: it is set aside
/// ([`crate::OpenStore::set_aside`]).
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// Another supervisor runs on the same folder.
    #[error(
        "state folder `{}` is in use by another supervisor{}: stop it, or give this one its own with `--state-dir`",
        folder.display(),
        pid.map(|pid| format!(" (process {pid})")).unwrap_or_default()
    )]
    InUse {
        /// The folder of the state.
        folder: PathBuf,
        /// The other supervisor's process, if the lock file names it.
        pid: Option<u32>,
    },
    /// No supervisor has run here yet.
    #[error("there is no state in `{}`: no supervisor has been started with this folder", folder.display())]
    NoState {
        /// The folder that should contain the state.
        folder: PathBuf,
    },
    /// Continuing would lose data that a newer supervisor has stored.
    #[error(
        "`{}` was written by a newer supervisor (schema {found}, this one knows up to {known}): install that version again, or move the file away to start afresh",
        path.display()
    )]
    Newer {
        /// The database file.
        path: PathBuf,
        /// The `user_version` of the file.
        found: i64,
        /// The highest `user_version` that this supervisor migrates to.
        known: i64,
    },
    /// The folder or a file in it cannot be used.
    #[error("failed to {action} `{}`", path.display())]
    File {
        /// The failed action, as a verb that precedes the path.
        action: &'static str,
        /// The file or folder in question.
        path: PathBuf,
        /// The operating system's error.
        source: std::io::Error,
    },
    /// The database cannot be opened, for a reason other than its contents.
    #[error("failed to open `{}`", path.display())]
    Open {
        /// The database file.
        path: PathBuf,
        /// SQLite's error.
        source: rusqlite::Error,
    },
    /// A statement failed.
    #[error("failed to {action}")]
    Failed {
        /// The failed action, as a verb and its object.
        action: &'static str,
        /// SQLite's error.
        source: rusqlite::Error,
    },
    /// A stored value is not what was written.
    #[error("{what} in the store is unreadable: `{value}`")]
    Damaged {
        /// The value, phrased as in a sentence: `an API key`.
        what: &'static str,
        /// The text as it was found.
        value: String,
    },
    /// The store cannot hold the value.
    #[error("{what} `{value}` is too large to be stored")]
    TooLarge {
        /// The number, phrased as in a sentence: `app id`.
        what: &'static str,
        /// The value, written out.
        value: String,
    },
    /// The operating system provided no random bytes.
    #[error("failed to create a new key: the system has no random numbers")]
    Random(#[source] getrandom::Error),
}

impl StoreError {
    /// Returns whether the disk accepted no write, because it is full, read-only or broken.
    pub(crate) fn is_of_the_disk(&self) -> bool {
        let StoreError::Failed { source, .. } = self else {
            return false;
        };
        matches!(
            source.sqlite_error_code(),
            Some(ErrorCode::DiskFull | ErrorCode::ReadOnly | ErrorCode::SystemIoFailure)
        )
    }

    /// For `map_err`: adds the action on a file or folder that failed.
    pub(crate) fn file(
        action: &'static str,
        path: &Path,
    ) -> impl FnOnce(std::io::Error) -> StoreError {
        let path = path.to_owned();
        move |source| StoreError::File {
            action,
            path,
            source,
        }
    }

    /// For `map_err`: adds the action during which a statement failed.
    pub(crate) fn failed(action: &'static str) -> impl FnOnce(rusqlite::Error) -> StoreError {
        move |source| StoreError::Failed { action, source }
    }
}

/// The reason why an operation on the database failed, whatever its purpose.
#[derive(Debug, thiserror::Error)]
pub(crate) enum DatabaseError {
    #[error(transparent)]
    Statement(#[from] rusqlite::Error),
    /// Another error, which contains its own context.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl DatabaseError {
    /// For `map_err`: adds the action.
    pub(crate) fn during(action: &'static str) -> impl FnOnce(DatabaseError) -> StoreError {
        move |error| match error {
            DatabaseError::Statement(source) => StoreError::Failed { action, source },
            DatabaseError::Store(error) => error,
        }
    }
}

/// The reason why a plugin's data was not stored or read.
#[derive(Debug, thiserror::Error)]
pub enum PluginDataError {
    /// The data exceeds a limit of the interface `store`; the text names the limit.
    #[error("{0}")]
    TooLarge(String),
    /// The database failed; the plugin's request was valid.
    #[error(transparent)]
    Store(#[from] StoreError),
}
