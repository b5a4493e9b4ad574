//! Keys that the device's owner names in the policy, and signatures by these keys. Keys and signatures are
//! those of minisign (Ed25519 over the BLAKE2b digest of the content).
//!
//! Both plugins and targets are checked with it. Each of the two decides itself what a key may sign.
//!
//! ```toml
//! [keys.acme]
//! public = "RWQf6LRC…"        # the second line of minisign's .pub file
//!
//! [keys.acme-2025]
//! public = "RWTg3N0p…"
//! revoked = true              # its signatures count no longer
//! ```

#![warn(missing_docs)]

mod key_file;
mod key_id;

use std::collections::BTreeMap;

pub use key_file::{KeyFileError, PublicKeyText};
pub use key_id::KeyId;
use minisign_verify::Error;
pub use minisign_verify::{PublicKey, Signature};
use serde::{Deserialize, Deserializer};

/// The public keys, by name.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(transparent)]
pub struct NamedKeys(BTreeMap<String, NamedKey>);

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
struct NamedKey {
    #[serde(deserialize_with = "public_key")]
    public: PublicKey,
    /// Whether its signatures no longer count.
    #[serde(default)]
    revoked: bool,
}

fn public_key<'de, D: Deserializer<'de>>(deserializer: D) -> Result<PublicKey, D::Error> {
    let text = String::deserialize(deserializer)?;
    PublicKey::from_base64(text.trim()).map_err(|_| {
        let start: String = text.chars().take(64).collect();
        serde::de::Error::custom(format!(
            "`{start}` is not a minisign public key: use the second line of its .pub file"
        ))
    })
}

impl NamedKeys {
    /// Returns the names, in order.
    pub fn names(&self) -> impl Iterator<Item = &String> {
        self.0.keys()
    }

    /// Returns the keys with their names, including revoked ones.
    pub fn iter(&self) -> impl Iterator<Item = (&String, &PublicKey)> {
        self.0.iter().map(|(name, key)| (name, &key.public))
    }

    /// Returns the key with this name, whether or not it is revoked.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&PublicKey> {
        self.0.get(name).map(|key| &key.public)
    }

    /// Returns whether the key is revoked under any of its names.
    #[must_use]
    pub fn is_revoked(&self, public: &PublicKey) -> bool {
        let mut keys = self.0.values();
        keys.any(|key| key.revoked && key.public == *public)
    }
}

/// The reason why a signature does not count. The subject of each sentence is the signature.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SignatureError {
    /// It cannot be read.
    #[error("is not a minisign signature")]
    Format,
    /// None of the keys made it.
    #[error("was made with a key that the policy does not name")]
    UnknownKey,
    /// One of the keys made it, over the content itself rather than its digest.
    #[error("has minisign's old format: sign with version 0.10 or later, or with -H")]
    OldKind,
    /// It names one of the keys, but does not match the content.
    #[error(
        "does not match the content: the file was changed after it was signed, or is another one"
    )]
    OtherContent,
}

/// Finds the one of `keys` that made the signature `text` of `content`.
///
/// # Errors
/// [`SignatureError`] if none of them did.
pub fn signer<'a>(
    text: &[u8],
    content: &[u8],
    keys: impl IntoIterator<Item = &'a PublicKey>,
) -> Result<&'a PublicKey, SignatureError> {
    let text = std::str::from_utf8(text).map_err(|_| SignatureError::Format)?;
    let signature = Signature::decode(text).map_err(|_| SignatureError::Format)?;
    let mut problem = SignatureError::UnknownKey;
    for key in keys {
        match key.verify(content, &signature, false) {
            Ok(()) => return Ok(key),
            // By another key, according to the number that both contain.
            Err(Error::UnexpectedKeyId) => {}
            Err(Error::UnexpectedAlgorithm) => problem = SignatureError::OldKind,
            Err(_) => problem = SignatureError::OtherContent,
        }
    }
    Err(problem)
}

#[cfg(test)]
mod tests;
