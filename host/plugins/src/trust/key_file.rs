//! The key of a plugin's maker, and its name in the policy.

use std::path::Path;

use signatures::PublicKeyText;

use super::TrustError;
use crate::keys::NamedKeys;
use crate::signature::{self, Signatures};
use crate::source_file::SourceFile;

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

/// Explains that the maker's key in the file `path` did not sign the plugin. Names both keys, and the remedy.
pub(super) fn not_signed(
    source: &SourceFile,
    path: &Path,
    maker: &KeyFile,
    named: &NamedKeys,
    signatures: &Signatures,
) -> TrustError {
    let file = source.path.display();
    let (id, others) = (maker.public.id(), source.signing_keys());
    let known = signatures
        .keys
        .iter()
        .find_map(|key| Some((key, named.name_of(key)?)));
    let reason = if let Some((key, name)) = known {
        let remedy = if named.is_revoked(key) {
            "which the policy has revoked; get a file that is signed with this one"
        } else {
            "a key of the policy; to trust that key, leave out --key, and otherwise get a file that is signed with this one"
        };
        format!("it is signed with `{name}`, {remedy}")
    } else if others.is_empty() && !signatures.are_there() {
        let lossy = source.path.to_string_lossy();
        format!(
            "it has no signature, neither in it nor in `{}`; sign it (`supervisor-plugin sign {} --key SECRET_KEY`), or leave out --key to trust this file and no other",
            signature::file_beside(&source.path).display(),
            shell_words::quote(&lossy)
        )
    } else if others.is_empty() || others.iter().any(|other| Some(*other) == id) {
        // Signed with this key, but the signature does not count: it is of another content or of an old format.
        format!(
            "{}; copy the file again, or sign it again",
            signatures.problems.join("; ")
        )
    } else {
        let others: Vec<_> = others.iter().map(|id| format!("the key {id}")).collect();
        format!(
            "it is signed with {}; to trust that key, give its .pub file to --key, and otherwise get a file that is signed with this one",
            others.join(" and ")
        )
    };
    let id = id.map_or_else(String::new, |id| format!(" {id}"));
    TrustError::NotSigned {
        file: file.to_string(),
        key: format!("the key{id} of `{}`", path.display()),
        reason,
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
