//! The keys of plugins' makers, as named by the owner in the policy. Files signed with a key are pinned by its name, so
//! an update needs no new line.
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

/// The public keys by name.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(transparent)]
pub(crate) struct NamedKeys(signatures::NamedKeys);

impl NamedKeys {
    /// Returns all public keys, including revoked ones: what they signed must be distinguishable from unsigned files.
    pub(crate) fn public_keys(&self) -> impl Iterator<Item = &PublicKey> {
        self.0.iter().map(|(_, key)| key)
    }

    /// Returns whether the key of that name has signed, and is still valid. An unknown name has signed nothing.
    pub(crate) fn has_signed(&self, name: &str, signatures: &Signatures) -> bool {
        let key = self.0.get(name);
        key.is_some_and(|key| !self.0.is_revoked(key) && signatures.keys.contains(key))
    }

    /// Returns all names.
    pub(crate) fn names(&self) -> impl Iterator<Item = &String> {
        self.0.names()
    }

    /// Returns the name of a key.
    pub(crate) fn name_of(&self, key: &PublicKey) -> Option<&str> {
        let mut keys = self.0.iter();
        let (name, _) = keys.find(|(_, named)| *named == key)?;
        Some(name)
    }

    /// Returns whether the key is revoked, under any of its names.
    pub(crate) fn is_revoked(&self, key: &PublicKey) -> bool {
        self.0.is_revoked(key)
    }

    /// Returns whether the key of that name has signed, and is revoked.
    pub(crate) fn is_signed_and_revoked(&self, name: &str, signatures: &Signatures) -> bool {
        let key = self.0.get(name);
        key.is_some_and(|key| self.0.is_revoked(key) && signatures.keys.contains(key))
    }

    /// Returns the first name of a key that has signed, and is still valid.
    pub(crate) fn signer(&self, signatures: &Signatures) -> Option<&str> {
        let mut names = self.0.names();
        let name = names.find(|name| self.has_signed(name, signatures));
        name.map(String::as_str)
    }

    /// Explains to the owner why no key of these names has signed.
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
