//! Reasons why a folder is not trusted.

use std::io;
use std::path::PathBuf;

/// The reason why a folder was not opened. Each message says what to do.
#[derive(Debug, thiserror::Error)]
pub enum DirError {
    /// It could not be created, opened or inspected.
    #[error("failed to open the folder `{}`", path.display())]
    Open {
        /// The folder.
        path: PathBuf,
        /// The operating system's error.
        source: io::Error,
    },
    /// There is a link or a file in its place.
    #[error("`{}` is not a folder: remove it, and it is created again", path.display())]
    NoFolder {
        /// The path of the link or file.
        path: PathBuf,
    },
    /// Somebody else created it, and can change everything in it.
    #[error(
        "the folder `{}` belongs to the user {owner}, not to {we}: remove it, or check what is in it and change its owner to {we}",
        path.display()
    )]
    Owner {
        /// The folder.
        path: PathBuf,
        /// Its owner's uid.
        owner: u32,
        /// The uid of this process.
        we: u32,
    },
    /// Others can write to it.
    #[error(
        "others can write into the folder `{}` (mode {mode:04o}): remove it, or check what is in it and make it writable only by its owner",
        path.display()
    )]
    Mode {
        /// The folder.
        path: PathBuf,
        /// Its permissions.
        mode: u32,
    },
    /// Others could write to the folder, and put this into it.
    #[error(
        "`{}` belongs to the user {owner}, who could write to its folder: remove it, or check it and change its owner",
        path.display()
    )]
    Entry {
        /// What is in the folder.
        path: PathBuf,
        /// Its owner's uid.
        owner: u32,
    },
}

impl DirError {
    /// Returns whether the folder itself is at fault: its owner, its permissions, or its type.
    #[must_use]
    pub fn is_distrust(&self) -> bool {
        !matches!(self, DirError::Open { .. })
    }
}

impl From<DirError> for io::Error {
    fn from(error: DirError) -> Self {
        let kind = match &error {
            DirError::Open { source, .. } => source.kind(),
            DirError::NoFolder { .. } => io::ErrorKind::NotADirectory,
            DirError::Owner { .. } | DirError::Mode { .. } | DirError::Entry { .. } => {
                io::ErrorKind::PermissionDenied
            }
        };
        // Only one line is shown, so it must also name the cause.
        let text = match &error {
            DirError::Open { source, .. } => format!("{error}: {source}"),
            _ => error.to_string(),
        };
        io::Error::new(kind, text)
    }
}
