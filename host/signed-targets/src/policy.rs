//! What the device's owner requires to be signed: the sections `[targets]` and `[keys]` of the policy.
//!
//! ```toml
//! [keys.fleet]
//! public = "RWQf6LRC…"        # the second line of the .pub file
//!
//! [targets]
//! keys = ["fleet"]            # the cloud's targets are taken only with a signature of one of these keys
//! local = true                # targets over the device's own API are taken without one
//! removal = true              # so are targets that take an app off the device
//! ```

use std::collections::BTreeSet;

use serde::Deserialize;
use signatures::{NamedKeys, PublicKey};

/// The requirements of a device for targets, if its owner requires signatures.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TargetPolicy {
    /// The keys; each of them may sign.
    pub keys: Vec<PublicKey>,
    /// The reasons why other keys in the policy do not count, in words.
    pub unusable: Vec<String>,
    /// Whether targets that are set over the device's own API are accepted.
    pub local: bool,
    /// Whether a target may remove an app from the device.
    pub removal: bool,
}

#[derive(Deserialize)]
struct PolicyFile {
    #[serde(default)]
    keys: NamedKeys,
    targets: Option<Targets>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Targets {
    keys: BTreeSet<String>,
    #[serde(default)]
    local: bool,
    #[serde(default)]
    removal: bool,
}

impl TargetPolicy {
    /// Reads it from the policy's text; `None` if the owner requires no signatures. Other sections are ignored.
    ///
    /// # Errors
    /// If the text is not TOML, or one of the two sections has unknown content.
    pub fn parse(text: &str) -> Result<Option<TargetPolicy>, toml::de::Error> {
        let file: PolicyFile = toml::from_str(text)?;
        let Some(targets) = file.targets else {
            return Ok(None);
        };
        let mut policy = TargetPolicy {
            local: targets.local,
            removal: targets.removal,
            ..TargetPolicy::default()
        };
        for name in &targets.keys {
            match file.keys.get(name) {
                None => policy
                    .unusable
                    .push(format!("the policy has no [keys.{name}]")),
                Some(key) if file.keys.is_revoked(key) => {
                    policy.unusable.push(format!("the key `{name}` is revoked"));
                }
                Some(key) => policy.keys.push(key.clone()),
            }
        }
        Ok(Some(policy))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signatures_are_required_if_the_policy_has_the_section() {
        let key = minisign::KeyPair::generate_unencrypted_keypair().unwrap();
        let key = key.pk.to_base64();
        let off = TargetPolicy::parse("[plugins.tags]\ngrants = [\"cloud\"]").unwrap();
        assert_eq!(off, None);
        let text = format!(
            "[keys.a]\npublic = \"{key}\"\n[targets]\nkeys = [\"a\", \"b\"]\nlocal = true\n"
        );
        let on = TargetPolicy::parse(&text).unwrap().unwrap();
        assert_eq!((on.keys.len(), on.local, on.removal), (1, true, false));
        assert_eq!(on.unusable, ["the policy has no [keys.b]"]);
        let revoked = text.replace("[targets]", "revoked = true\n[targets]");
        let on = TargetPolicy::parse(&revoked).unwrap().unwrap();
        assert!(on.keys.is_empty(), "{on:?}");
        // The section counts even without keys: then nothing is accepted.
        let on = TargetPolicy::parse("[targets]\nkeys = []").unwrap();
        assert!(on.is_some_and(|on| on.keys.is_empty()));
    }

    #[test]
    fn a_misspelt_section_is_an_error() {
        for text in [
            "[targets]",
            "[targets]\nkeys = \"a\"",
            "[targets]\nkeys = []\nlocals = true",
            "[targets\nkeys = []",
            "targets = true",
        ] {
            assert!(TargetPolicy::parse(text).is_err(), "{text}");
        }
    }
}
