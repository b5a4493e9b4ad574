//! Why the store did not do as it was told.

use std::path::PathBuf;

use rusqlite::ErrorCode;

/// Failures of the store. A corrupt file at the start is none of them: it is set aside
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
        /// The other supervisor's process, where the lock file says it.
        pid: Option<u32>,
    },
    /// No supervisor has run here yet.
    #[error("there is no state in `{}`: no supervisor has been started with this folder", folder.display())]
    NoState {
        /// The folder that was looked in.
        folder: PathBuf,
    },
    /// Going on would lose what a newer supervisor has stored.
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
        /// What was being done, as a verb that goes before the path.
        action: &'static str,
        /// The file or folder that it was done to.
        path: PathBuf,
        /// What the operating system said.
        source: std::io::Error,
    },
    /// The database cannot be opened, for a reason other than its contents.
    #[error("failed to open `{}`", path.display())]
    Open {
        /// The database file.
        path: PathBuf,
        /// What SQLite said.
        source: rusqlite::Error,
    },
    /// A statement failed.
    #[error("failed to {action}")]
    Failed {
        /// What was being done, as a verb and its object.
        action: &'static str,
        /// What SQLite said.
        source: rusqlite::Error,
    },
    /// What is stored is not what was written.
    #[error("{what} in the store is unreadable: `{value}`")]
    Damaged {
        /// Which value, as it stands in a sentence: `an API key`.
        what: &'static str,
        /// The text as it was found.
        value: String,
    },
    /// The value is one that the store cannot hold.
    #[error("{what} `{value}` is too large to be stored")]
    TooLarge {
        /// Which number, as it stands in a sentence: `app id`.
        what: &'static str,
        /// The value, written out.
        value: String,
    },
    /// The operating system gave no random bytes.
    #[error("failed to create a new key: the system has no random numbers")]
    Random(#[source] getrandom::Error),
}

impl StoreError {
    /// Whether the disk took no write, for want of room or because it is read-only or broken.
    pub(crate) fn is_of_the_disk(&self) -> bool {
        let StoreError::Failed { source, .. } = self else {
            return false;
        };
        matches!(
            source.sqlite_error_code(),
            Some(ErrorCode::DiskFull | ErrorCode::ReadOnly | ErrorCode::SystemIoFailure)
        )
    }

    /// For `map_err`: what was being done when a statement failed.
    pub(crate) fn failed(action: &'static str) -> impl FnOnce(rusqlite::Error) -> StoreError {
        move |source| StoreError::Failed { action, source }
    }
}

/// Why work on the database failed, whatever it was for.
#[derive(Debug, thiserror::Error)]
pub(crate) enum DatabaseError {
    #[error(transparent)]
    Statement(#[from] rusqlite::Error),
    /// Something else, which says itself what it is about.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl DatabaseError {
    /// For `map_err`: what was being done.
    pub(crate) fn during(action: &'static str) -> impl FnOnce(DatabaseError) -> StoreError {
        move |error| match error {
            DatabaseError::Statement(source) => StoreError::Failed { action, source },
            DatabaseError::Store(error) => error,
        }
    }
}

/// Why a plugin's data was not stored or read.
#[derive(Debug, thiserror::Error)]
pub enum PluginDataError {
    /// Over a limit of the interface `store`; the text says which.
    #[error("{0}")]
    TooLarge(String),
    /// The database failed, with nothing wrong in what the plugin asked.
    #[error(transparent)]
    Store(#[from] StoreError),
}
