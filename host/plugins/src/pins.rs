//! Which files a name in the policy stands for. A plugin's name is its own word: what belongs to the name
//! goes only to files that somebody has pinned to it.

use std::collections::BTreeSet;

use serde::{Deserialize, Deserializer};

/// The number of hexadecimal digits of a SHA-256.
const DIGITS: usize = 64;

/// The digests of whole files, as [`compiled_code::digest`] gives them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct FileDigests(BTreeSet<String>);

impl FileDigests {
    /// Whether the file of this digest is one of them.
    pub(crate) fn contain(&self, digest: &str) -> bool {
        self.0.contains(digest)
    }
}

impl<'de> Deserialize<'de> for FileDigests {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut digests = BTreeSet::new();
        for text in Vec::<String>::deserialize(deserializer)? {
            let digest = text.to_ascii_lowercase();
            if digest.len() != DIGITS || !digest.bytes().all(|byte| byte.is_ascii_hexdigit()) {
                let start: String = text.chars().take(DIGITS).collect();
                return Err(serde::de::Error::custom(format!(
                    "`{start}` is not a SHA-256 digest, which has {DIGITS} hexadecimal digits"
                )));
            }
            digests.insert(digest);
        }
        Ok(FileDigests(digests))
    }
}

/// What has bound a file to the name that it claims.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) enum Pin {
    /// Its digest, in the policy or in the layout's list.
    #[default]
    Digest,
    /// A signature of the key of this name in the policy.
    Key(String),
    /// Nothing: the supervisor does not ask for pins.
    None,
}
