//! Keys from outside the database, which encrypt the secrets in it.
//!
//! ```text
//! # the first encrypts, all decrypt
//! 2026-11 q83vEjRWeJCrze8SNFZ4kKvN7xI0VniQq83vEjRWeJA=
//! ```
//!
//! A value is stored as `sealed:1:<name of the key>:<nonce and ciphertext in base64url>` (XChaCha20-Poly1305). Its
//! place (table, column and row) is authenticated with it, so that it can be decrypted nowhere else.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use chacha20poly1305::aead::{Aead as _, KeyInit as _, Payload};
use chacha20poly1305::{Key, XChaCha20Poly1305, XNonce};

use crate::dialect::Dialect;
pub use place::SecretLocation;

mod place;
#[cfg(test)]
mod tests;

/// The prefix of every value that is not stored verbatim.
const SEALED: &str = "sealed:";
/// The version of the format described above.
const VERSION: &str = "1";
/// In place of a version: the value itself follows, which begins like a sealed one.
const PLAIN: &str = "0:";
const NONCE: usize = 24;
/// Bytes that authenticate a ciphertext.
const TAG: usize = 16;
/// The size of a key in bytes.
const KEY: usize = 32;
/// The maximum length of a key's name, in characters.
const LONGEST_NAME: usize = 32;

/// Keys with their names. Clones share them.
#[derive(Clone, Default)]
pub struct Keyring {
    /// The first key encrypts.
    keys: Arc<[NamedKey]>,
}

struct NamedKey {
    name: String,
    cipher: XChaCha20Poly1305,
}

/// Never shows a key.
impl std::fmt::Debug for Keyring {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        to.debug_list().entries(self.names()).finish()
    }
}

/// Why a text is not a valid list of keys. The message contains nothing of the text except names.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum KeyringError {
    /// It has no line with a key.
    #[error("it holds no key; `fleet-cloud secrets-key generate` prints one")]
    Empty,
    /// A line is not a key.
    #[error(
        "line {line} is not a key: a name of letters, digits, `.`, `_` and `-` ({LONGEST_NAME} characters at most), a \
         space, and {KEY} bytes in base64"
    )]
    Line {
        /// Its number, from 1.
        line: usize,
    },
    /// Two keys have the same name.
    #[error(
        "line {line} has the name `{name}`, which an earlier key has already; each key needs a name of its own"
    )]
    Twice {
        /// The number of the second line, from 1.
        line: usize,
        /// The name.
        name: String,
    },
}

/// Why a value of the database cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UnreadableSecret {
    /// Its key is missing.
    #[error(
        "{place} is encrypted with the key `{key}`, which is not among the given ones: put that key back into the file \
         that `secrets_key_file` names"
    )]
    NoKey {
        /// Its place.
        place: SecretLocation,
        /// The name of the key.
        key: String,
    },
    /// It was not encrypted with this key for this place.
    #[error(
        "{place} cannot be decrypted with the key `{key}`: either a different key had this name when the value was \
         encrypted, or the value was changed or moved in the database; put the right key into the file that \
         `secrets_key_file` names, or set the value again"
    )]
    Refused {
        /// Its place.
        place: SecretLocation,
        /// The name of the key.
        key: String,
    },
    /// It has an unknown format.
    #[error("{place} is encrypted in a form that this version does not know; set the value again")]
    Form {
        /// Its place.
        place: SecretLocation,
    },
}

/// Returns an SQL expression for the size in bytes of the original value of the column `value`, of which `bytes` are
/// stored. If `flag` is set, the value is stored as [`Keyring::seal`] does with or without keys.
pub(crate) fn bytes_within(dialect: Dialect, flag: &str, bytes: &str) -> String {
    let position = match dialect {
        Dialect::Sqlite => "instr",
        Dialect::Postgres => "strpos",
    };
    let sealed = format!("{SEALED}{VERSION}:");
    let plain = format!("{SEALED}{PLAIN}");
    let (begin, of_plain) = (sealed.len(), plain.len());
    let added = NONCE + TAG;
    // Base64 has four characters for three bytes, and begins after the name of the key. All of it is ASCII.
    format!(
        "CASE WHEN {flag} AND substr(value, 1, {begin}) = '{sealed}' \
         THEN (length(value) - {begin} - {position}(substr(value, {begin} + 1), ':')) * 3 / 4 - {added} \
         WHEN {flag} AND substr(value, 1, {of_plain}) = '{plain}' THEN {bytes} - {of_plain} ELSE {bytes} END"
    )
}

impl Keyring {
    /// Parses the keys of a file: one per line, as shown in the module; empty lines and those that begin with `#` are
    /// ignored.
    ///
    /// # Errors
    /// If a line is not a key, or there is none.
    pub fn parse(text: &str) -> Result<Self, KeyringError> {
        let mut keys: Vec<NamedKey> = Vec::new();
        for (number, line) in text.lines().enumerate() {
            let (line, number) = (line.trim(), number + 1);
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let named = NamedKey::parse(line).ok_or(KeyringError::Line { line: number })?;
            if keys.iter().any(|key| key.name == named.name) {
                return Err(KeyringError::Twice {
                    line: number,
                    name: named.name,
                });
            }
            keys.push(named);
        }
        if keys.is_empty() {
            Err(KeyringError::Empty)
        } else {
            Ok(Keyring { keys: keys.into() })
        }
    }

    /// Returns a line with a new key of this name, or of a random one.
    ///
    /// # Errors
    /// If the system has no random numbers.
    pub fn new_line(name: Option<&str>) -> Result<String, getrandom::Error> {
        let mut key = [0; KEY];
        getrandom::fill(&mut key)?;
        let mut digits = [0; 4];
        getrandom::fill(&mut digits)?;
        let name = match name {
            Some(name) => name.to_owned(),
            None => format!("key-{}", hex::encode(digits)),
        };
        Ok(format!("{name} {}", STANDARD.encode(key)))
    }

    /// Returns whether there are no keys, so that nothing is encrypted.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// Returns the names of the keys, that of the encrypting one first.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.keys.iter().map(|key| key.name.as_str())
    }

    /// Converts a value to its stored form at a place: encrypted with the first key, or unencrypted if there are no
    /// keys.
    ///
    /// # Errors
    /// If the system has no random numbers.
    pub fn seal(&self, place: &SecretLocation, value: &str) -> Result<String, getrandom::Error> {
        let Some(key) = self.keys.first() else {
            return Ok(Self::unsealed(value));
        };
        let mut nonce = [0; NONCE];
        getrandom::fill(&mut nonce)?;
        let payload = Payload {
            msg: value.as_bytes(),
            aad: &place.authenticated(&key.name),
        };
        // It fails only for texts of more than 256 GiB.
        let ciphertext = key.cipher.encrypt(&XNonce::from(nonce), payload);
        let ciphertext = ciphertext.map_err(|_| getrandom::Error::UNSUPPORTED)?;
        let bytes = [nonce.as_slice(), &ciphertext].concat();
        let prefix = prefix(&key.name);
        Ok(format!("{prefix}{}", URL_SAFE_NO_PAD.encode(bytes)))
    }

    /// Converts a value to its stored form without encryption.
    pub(crate) fn unsealed(value: &str) -> String {
        if value.starts_with(SEALED) {
            format!("{SEALED}{PLAIN}{value}")
        } else {
            value.to_owned()
        }
    }

    /// Converts a stored form at a place back to the value.
    ///
    /// # Errors
    /// If it is encrypted, but not with one of these keys for this place.
    pub fn open(&self, place: &SecretLocation, stored: &str) -> Result<String, UnreadableSecret> {
        let Some(sealed) = stored.strip_prefix(SEALED) else {
            return Ok(stored.to_owned());
        };
        if let Some(value) = sealed.strip_prefix(PLAIN) {
            return Ok(value.to_owned());
        }
        let unknown = || UnreadableSecret::Form {
            place: place.clone(),
        };
        let (VERSION, rest) = sealed.split_once(':').ok_or_else(unknown)? else {
            return Err(unknown());
        };
        let (name, text) = rest.split_once(':').ok_or_else(unknown)?;
        let key = self.keys.iter().find(|key| key.name == name);
        let key = key.ok_or_else(|| UnreadableSecret::NoKey {
            place: place.clone(),
            key: name.to_owned(),
        })?;
        let refused = || UnreadableSecret::Refused {
            place: place.clone(),
            key: name.to_owned(),
        };
        let bytes = URL_SAFE_NO_PAD.decode(text).map_err(|_| refused())?;
        let (nonce, ciphertext) = bytes.split_first_chunk::<NONCE>().ok_or_else(refused)?;
        let payload = Payload {
            msg: ciphertext,
            aad: &place.authenticated(name),
        };
        let opened = key.cipher.decrypt(&XNonce::from(*nonce), payload);
        let opened = opened.map_err(|_| refused())?;
        String::from_utf8(opened).map_err(|_| refused())
    }
}

/// Returns the prefix of values that are encrypted with the key of this name.
pub(crate) fn prefix(key: &str) -> String {
    format!("{SEALED}{VERSION}:{key}:")
}

/// Returns the prefix of values that are encrypted with any key.
pub(crate) fn any_prefix() -> String {
    format!("{SEALED}{VERSION}:")
}

/// Returns the name of the key that a value is encrypted with; `None` if it is not encrypted.
pub(crate) fn key_of(stored: &str) -> Option<&str> {
    let rest = stored.strip_prefix(SEALED)?.strip_prefix(VERSION)?;
    rest.strip_prefix(':')?.split_once(':').map(|(key, _)| key)
}

impl NamedKey {
    fn parse(line: &str) -> Option<Self> {
        let (name, key) = line.split_once(char::is_whitespace)?;
        if !is_key_name(name) {
            return None;
        }
        let key = STANDARD.decode(key.trim()).ok()?;
        let key: [u8; KEY] = key.try_into().ok()?;
        Some(NamedKey {
            name: name.to_owned(),
            cipher: XChaCha20Poly1305::new(&Key::from(key)),
        })
    }
}

/// Returns whether a text is a valid name of a key.
#[must_use]
pub fn is_key_name(name: &str) -> bool {
    (1..=LONGEST_NAME).contains(&name.len())
        && name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte))
}
