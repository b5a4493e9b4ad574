//! A maker's public key in the form in which it is published: the `.pub` file of minisign or of `supervisor-plugin
//! keygen`.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;

use minisign_verify::PublicKey;

use crate::KeyId;

/// The largest accepted file, in bytes: far more than its two lines need.
const MAX_SIZE: u64 = 4096;

/// A public key, and its text in a policy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PublicKeyText {
    /// The key.
    pub key: PublicKey,
    /// In base64: letters, digits, `+`, `/` and `=`.
    pub base64: String,
}

/// The reason why there is no public key. The subject of each sentence is the file, or the text.
#[derive(Debug, thiserror::Error)]
pub enum KeyFileError {
    /// The file cannot be opened or read, or is not text.
    #[error("it cannot be read: {0}")]
    Unreadable(#[from] io::Error),
    /// It is a folder, a pipe or a device, or too long.
    #[error("it is not a file of at most {MAX_SIZE} bytes")]
    NotAKeyFile,
    /// The last line, or the text, is something else.
    #[error(
        "its last line is not a minisign public key, which begins with `RW`: use the maker's .pub file"
    )]
    Format,
}

impl PublicKeyText {
    /// Returns the id of the key; `None` if the text is not that of a key.
    #[must_use]
    pub fn id(&self) -> Option<KeyId> {
        KeyId::of_line(&self.base64)
    }

    /// Parses the key in the last non-empty line of a text.
    ///
    /// # Errors
    /// [`KeyFileError::Format`] if that is not a key.
    pub fn parse(text: &str) -> Result<Self, KeyFileError> {
        let last = text.lines().rfind(|line| !line.trim().is_empty());
        let base64 = last.unwrap_or_default().trim().to_owned();
        let key = PublicKey::from_base64(&base64).map_err(|_| KeyFileError::Format)?;
        Ok(Self { key, base64 })
    }

    /// Reads the key in the file `path`.
    ///
    /// # Errors
    /// [`KeyFileError`] if there is none.
    pub fn read(path: &Path) -> Result<Self, KeyFileError> {
        // Opening a pipe without a writer would block.
        if !std::fs::metadata(path)?.is_file() {
            return Err(KeyFileError::NotAKeyFile);
        }
        let mut text = String::new();
        File::open(path)?
            .take(MAX_SIZE + 1)
            .read_to_string(&mut text)?;
        if text.len() as u64 > MAX_SIZE {
            return Err(KeyFileError::NotAKeyFile);
        }
        Self::parse(&text)
    }
}
