//! Which files a name in the policy refers to. A plugin chooses its own name, so what the policy grants to the name
//! goes only to files that are pinned to it.

use std::collections::BTreeSet;

use serde::{Deserialize, Deserializer};

/// The number of hexadecimal digits of a SHA-256.
const DIGITS: usize = 64;

/// The digests of whole files, as returned by [`compiled_code::digest`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct FileDigests(BTreeSet<String>);

impl FileDigests {
    /// Returns whether the file with this digest is one of them.
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

/// How a file was bound to the name that it claims.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) enum Pin {
    /// Its digest, in the policy or in the layout's list.
    #[default]
    Digest,
    /// A signature by the policy's key of this name.
    Key(String),
    /// Nothing: the supervisor does not require pins.
    None,
}
