//! Why a folder is not trusted.

use std::io;
use std::path::PathBuf;

/// Why a folder was not opened. Each says what to do.
#[derive(Debug, thiserror::Error)]
pub enum DirError {
    /// It could not be made, opened or looked at.
    #[error("failed to open the folder `{}`", path.display())]
    Open {
        /// The folder.
        path: PathBuf,
        /// What the operating system said.
        source: io::Error,
    },
    /// A link or a file stands in its place.
    #[error("`{}` is not a folder: remove it, and it is created again", path.display())]
    NoFolder {
        /// What stands there.
        path: PathBuf,
    },
    /// Somebody else made it, and can change everything in it.
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
    /// Others can write into it.
    #[error(
        "others can write into the folder `{}` (mode {mode:04o}): remove it, or check what is in it and make it writable by its owner alone",
        path.display()
    )]
    Mode {
        /// The folder.
        path: PathBuf,
        /// Its permissions.
        mode: u32,
    },
}

impl DirError {
    /// Whether the folder itself is at fault: who owns it, who may write into it, what it is.
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
            DirError::Owner { .. } | DirError::Mode { .. } => io::ErrorKind::PermissionDenied,
        };
        // The one line that is shown has to name the cause as well.
        let text = match &error {
            DirError::Open { source, .. } => format!("{error}: {source}"),
            _ => error.to_string(),
        };
        io::Error::new(kind, text)
    }
}
