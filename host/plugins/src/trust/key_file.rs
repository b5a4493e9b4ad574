//! The key of a plugin's maker, and its name in the policy.

use std::path::Path;

use signatures::PublicKeyText;

/// A key that the owner has in a file.
pub(super) struct KeyFile {
    /// Its name in the policy: the file's name without `.pub` and `.key`.
    pub(super) name: String,
    pub(super) public: PublicKeyText,
}

impl KeyFile {
    /// Reads the key in `path`.
    ///
    /// # Errors
    /// Why there is no key that the policy can name.
    pub(super) fn read(path: &Path) -> Result<KeyFile, String> {
        let public = PublicKeyText::read(path).map_err(|error| error.to_string())?;
        Ok(KeyFile {
            name: name(path)?,
            public,
        })
    }
}

/// Returns a name that TOML accepts without quotes.
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
