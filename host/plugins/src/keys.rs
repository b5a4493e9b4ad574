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

use std::collections::BTreeMap;

use minisign_verify::PublicKey;
use serde::{Deserialize, Deserializer};

use crate::signature::Signatures;

/// The public keys by their names.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(transparent)]
pub(crate) struct NamedKeys(BTreeMap<String, NamedKey>);

/// One of them.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
struct NamedKey {
    #[serde(deserialize_with = "public_key")]
    public: PublicKey,
    /// Whether its signatures count no longer.
    #[serde(default)]
    revoked: bool,
}

fn public_key<'de, D: Deserializer<'de>>(deserializer: D) -> Result<PublicKey, D::Error> {
    let text = String::deserialize(deserializer)?;
    PublicKey::from_base64(text.trim()).map_err(|_| {
        let start: String = text.chars().take(64).collect();
        serde::de::Error::custom(format!(
            "`{start}` is no public key of minisign: take the second line of its .pub file"
        ))
    })
}

impl NamedKeys {
    /// All public keys, those that are revoked as well: what they have signed is to be told from what nobody has.
    pub(crate) fn public_keys(&self) -> impl Iterator<Item = &PublicKey> {
        self.0.values().map(|key| &key.public)
    }

    /// Whether the key of that name has signed, and still counts. A name that is not there has signed nothing.
    pub(crate) fn has_signed(&self, name: &str, signatures: &Signatures) -> bool {
        self.0.get(name).is_some_and(|key| {
            !self.is_revoked(&key.public) && signatures.keys.contains(&key.public)
        })
    }

    /// The first name of a key that has signed, and still counts.
    pub(crate) fn signer(&self, signatures: &Signatures) -> Option<&str> {
        let mut names = self.0.keys();
        let name = names.find(|name| self.has_signed(name, signatures));
        name.map(String::as_str)
    }

    /// Whether the key is revoked under any of its names.
    fn is_revoked(&self, public: &PublicKey) -> bool {
        let mut keys = self.0.values();
        keys.any(|key| key.revoked && key.public == *public)
    }

    /// Why no key of these names has signed, for the owner.
    pub(crate) fn why_not_signed<'a>(
        &self,
        names: impl IntoIterator<Item = &'a String>,
        signatures: &Signatures,
    ) -> String {
        let mut reasons = Vec::new();
        for (name, key) in &self.0 {
            if signatures.keys.contains(&key.public) {
                reasons.push(if self.is_revoked(&key.public) {
                    format!("it is signed with `{name}`, which is revoked")
                } else {
                    format!("it is signed with `{name}`, which the section does not name")
                });
            }
        }
        reasons.extend(signatures.problems.iter().cloned());
        for name in names {
            if !self.0.contains_key(name) {
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
