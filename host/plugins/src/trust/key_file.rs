//! The key of a plugin's maker, as the maker publishes it: the file `.pub` of minisign or of `supervisor-plugin keygen`.

use std::path::Path;

use signatures::PublicKey;

/// Far more than the two lines of such a file.
const SIZE: u64 = 4096;

/// A key that the owner has in a file.
pub(super) struct KeyFile {
    /// What the policy calls it: the file's name without `.pub` and `.key`.
    pub(super) name: String,
    /// The key as the policy writes it.
    pub(super) base64: String,
    pub(super) key: PublicKey,
}

impl KeyFile {
    /// Reads the key in `path`.
    ///
    /// # Errors
    /// Why there is none that the policy can name.
    pub(super) fn read(path: &Path) -> Result<KeyFile, String> {
        let unreadable = |error| format!("it cannot be read: {error}");
        let metadata = std::fs::metadata(path).map_err(unreadable)?;
        if !metadata.is_file() || metadata.len() > SIZE {
            return Err(format!("it is not a file of at most {SIZE} bytes"));
        }
        let text = std::fs::read_to_string(path).map_err(unreadable)?;
        let last = text.lines().rfind(|line| !line.trim().is_empty());
        let base64 = last.unwrap_or_default().trim().to_owned();
        let key = PublicKey::from_base64(&base64).map_err(|_| {
            "its last line is not a minisign public key, which begins with `RW`: take the maker's .pub file"
        })?;
        Ok(KeyFile {
            name: name(path)?,
            base64,
            key,
        })
    }
}

/// A name that TOML takes without quotes.
fn name(path: &Path) -> Result<String, String> {
    let file = path.file_name().unwrap_or_default().to_string_lossy();
    let stem = file.strip_suffix(".pub").unwrap_or(&file);
    let stem = stem.strip_suffix(".key").unwrap_or(stem);
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    if stem.is_empty() || !stem.bytes().all(fits) {
        return Err(
            "the policy names the key as the file, without `.pub`: rename the file to letters, digits, `-` and `_`"
                .to_owned(),
        );
    }
    Ok(stem.to_owned())
}
