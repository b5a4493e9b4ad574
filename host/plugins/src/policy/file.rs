//! The file of a policy: who may have written it, and its contents.

use std::path::{Path, PathBuf};

use plugin_manifest::FormError;
use serde::de::DeserializeOwned;

use crate::owners::{self, OwnerError};

/// The largest policy file, in bytes.
const SIZE: u64 = 1 << 20;

/// Why a policy cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum PolicyError {
    /// It cannot be read.
    #[error("cannot read the policy `{}`", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
    /// Somebody else could have written it.
    #[error("the policy is not read")]
    Owner(#[from] OwnerError),
    /// It is too large.
    #[error("the policy `{}` has more than {SIZE} bytes", path.display())]
    TooLarge {
        /// The file.
        path: PathBuf,
    },
    /// It is not TOML of the expected form, or something in it cannot be granted.
    #[error("the policy `{}` is invalid: {reason}", path.display())]
    Invalid {
        /// The file.
        path: PathBuf,
        /// What is wrong, and where.
        reason: String,
    },
}

/// Parses the text of the file at `path`.
pub(super) fn parse<T: DeserializeOwned>(path: &Path, text: &str) -> Result<T, PolicyError> {
    toml::from_str(text).map_err(|error| PolicyError::Invalid {
        path: path.to_owned(),
        reason: FormError::new(&error).with_place(text),
    })
}

/// Returns the text of the policy at `path` if nobody else can have written it; with `anybodys`, its writer is not
/// checked. Returns `None` if there is no such file.
///
/// # Errors
/// [`PolicyError`] if it cannot be read, is too large, or could have been written by others.
pub fn policy_text(path: &Path, anybodys: bool) -> Result<Option<String>, PolicyError> {
    if path.exists() && !anybodys {
        owners::check(path)?;
    }
    read_text(path)
}

/// Returns the text of the file at `path`; `None` if there is no such file.
fn read_text(path: &Path) -> Result<Option<String>, PolicyError> {
    let failed = |source| PolicyError::Read {
        path: path.to_owned(),
        source,
    };
    let bytes = match secure_fs::read_beginning(path, SIZE + 1) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(failed(error)),
    };
    if bytes.len() as u64 > SIZE {
        return Err(PolicyError::TooLarge {
            path: path.to_owned(),
        });
    }
    let text = String::from_utf8(bytes);
    text.map(Some)
        .map_err(|error| failed(std::io::Error::other(error)))
}
