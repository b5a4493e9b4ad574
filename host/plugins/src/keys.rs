//! The keys of plugins' makers, as the owner has named them in the policy. Files that a key has signed are pinned by
//! its name, so that an update needs no new line.
//!
//! ```toml
//! [keys.acme]
//! public = "RWQf6LRC…"        # the second line of minisign's .pub file
//!
//! [keys.acme-2025]
//! public = "RWTg3N0p…"
//! revoked = true              # what it has signed is pinned by it no more
//! ```

use serde::Deserialize;
use signatures::PublicKey;

use crate::signature::Signatures;

/// The public keys by their names.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(transparent)]
pub(crate) struct NamedKeys(signatures::NamedKeys);

impl NamedKeys {
    /// All public keys, those that are revoked as well: what they have signed is to be told from what nobody has.
    pub(crate) fn public_keys(&self) -> impl Iterator<Item = &PublicKey> {
        self.0.iter().map(|(_, key)| key)
    }

    /// Whether the key of that name has signed, and still counts. A name that is not there has signed nothing.
    pub(crate) fn has_signed(&self, name: &str, signatures: &Signatures) -> bool {
        let key = self.0.get(name);
        key.is_some_and(|key| !self.0.is_revoked(key) && signatures.keys.contains(key))
    }

    /// All names.
    pub(crate) fn names(&self) -> impl Iterator<Item = &String> {
        self.0.names()
    }

    /// The name of a key.
    pub(crate) fn name_of(&self, key: &PublicKey) -> Option<&str> {
        let mut keys = self.0.iter();
        let (name, _) = keys.find(|(_, named)| *named == key)?;
        Some(name)
    }

    /// Whether the key counts no more, under any of its names.
    pub(crate) fn is_revoked(&self, key: &PublicKey) -> bool {
        self.0.is_revoked(key)
    }

    /// Whether the key of that name has signed, and counts no more.
    pub(crate) fn is_signed_and_revoked(&self, name: &str, signatures: &Signatures) -> bool {
        let key = self.0.get(name);
        key.is_some_and(|key| self.0.is_revoked(key) && signatures.keys.contains(key))
    }

    /// The first name of a key that has signed, and still counts.
    pub(crate) fn signer(&self, signatures: &Signatures) -> Option<&str> {
        let mut names = self.0.names();
        let name = names.find(|name| self.has_signed(name, signatures));
        name.map(String::as_str)
    }

    /// Why no key of these names has signed, for the owner.
    pub(crate) fn why_not_signed<'a>(
        &self,
        names: impl IntoIterator<Item = &'a String>,
        signatures: &Signatures,
    ) -> String {
        let mut reasons = Vec::new();
        for (name, key) in self.0.iter() {
            if signatures.keys.contains(key) {
                reasons.push(if self.0.is_revoked(key) {
                    format!("it is signed with `{name}`, which is revoked")
                } else {
                    format!("it is signed with `{name}`, which the section does not name")
                });
            }
        }
        reasons.extend(signatures.problems.iter().cloned());
        for name in names {
            if self.0.get(name).is_none() {
                reasons.push(format!("the policy has no [keys.{name}]"));
            }
        }
        if reasons.is_empty() {
            "it has no signature".to_owned()
        } else {
            reasons.join("; ")
        }
    }
}
