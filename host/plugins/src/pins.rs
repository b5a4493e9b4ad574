//! Which files a name in the policy stands for. A plugin's name is its own word: what belongs to the name
//! goes only to files that somebody has pinned to it.

use std::collections::BTreeSet;
use std::path::PathBuf;

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

/// Why a file gets nothing of what the policy gives to the name that it claims.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum PinError {
    /// Nobody has pinned a file of that name.
    #[error(
        "the policy `{}` pins no file of a plugin `{plugin}`; to trust this one: [plugins.{plugin}] sha256 = [\"{digest}\"] (`supervisor plugins trust FILE` prints all that it needs)",
        policy.display()
    )]
    NoFile {
        /// The name that it claims.
        plugin: String,
        /// The file's digest.
        digest: String,
        /// The policy's file.
        policy: PathBuf,
    },
    /// The policy has pinned other files to that name.
    #[error(
        "the policy `{}` pins other files of the plugin `{plugin}`; to trust this one as well, add \"{digest}\" to `sha256` in [plugins.{plugin}]",
        policy.display()
    )]
    OtherFiles {
        /// The name that it claims.
        plugin: String,
        /// The file's digest.
        digest: String,
        /// The policy's file.
        policy: PathBuf,
    },
    /// The policy wants it signed, and it is not.
    #[error(
        "the policy `{}` wants files of the plugin `{plugin}` signed with {keys}: {reason}; to trust this one all the same, add \"{digest}\" to `sha256` in [plugins.{plugin}]",
        policy.display()
    )]
    NotSigned {
        /// The name that it claims.
        plugin: String,
        /// The names of the keys of which one has to have signed it.
        keys: String,
        /// What is wrong with its signatures.
        reason: String,
        /// The file's digest.
        digest: String,
        /// The policy's file.
        policy: PathBuf,
    },
    /// The name is a stock plugin's, and this is another file.
    #[error(
        "`{plugin}` is a stock plugin, and this is another file than the one that `{}` pins; to trust this one in its place: [plugins.{plugin}] sha256 = [\"{digest}\"] in the policy `{}`",
        stock.display(), policy.display()
    )]
    NotStock {
        /// The name that it claims.
        plugin: String,
        /// The file's digest.
        digest: String,
        /// The list of stock plugins.
        stock: PathBuf,
        /// The policy's file.
        policy: PathBuf,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Deserialize)]
    struct Section {
        sha256: FileDigests,
    }

    #[test]
    fn a_digest_has_64_digits_in_either_case() {
        let digest = compiled_code::digest(b"a file");
        for written in [digest.clone(), digest.to_ascii_uppercase()] {
            let section: Section = toml::from_str(&format!("sha256 = [\"{written}\"]")).unwrap();
            assert!(section.sha256.contain(&digest), "{written}");
            assert!(!section.sha256.contain(&compiled_code::digest(b"another")));
        }
        let (long, strange) = (format!("{digest}0"), "g".repeat(64));
        for wrong in ["", "*", &digest[1..], long.as_str(), strange.as_str()] {
            let error = toml::from_str::<Section>(&format!("sha256 = [\"{wrong}\"]")).unwrap_err();
            assert!(
                error.to_string().contains("is not a SHA-256 digest"),
                "{error}"
            );
        }
    }
}
