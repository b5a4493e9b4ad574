//! Signers of a file, for tools that show them: by the rules of the device, without a device.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Deserialize;
use signatures::PublicKey;

use crate::keys::NamedKeys;
use crate::signature::{self, Signatures};

/// Where a file's signature is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, derive_more::Display)]
pub enum SignaturePlace {
    /// In the last section of the file.
    #[display("in the file")]
    InFile,
    /// In `FILE.minisig` next to it.
    #[display("beside the file")]
    Beside,
}

/// The keys of a policy that have signed a file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SignatureCheck {
    /// Names of the policy's keys that have signed it, are not revoked, and are those of the plugin's section if the policy
    /// has one.
    pub signers: Vec<String>,
    /// Why other signatures do not count, in sentences.
    pub problems: Vec<String>,
}

/// The part of a policy that matters here.
#[derive(Deserialize)]
struct KeysOfPolicy {
    #[serde(default)]
    keys: NamedKeys,
    #[serde(default)]
    plugins: BTreeMap<String, KeysOfSection>,
}

/// The keys that the section of a plugin names.
#[derive(Deserialize)]
struct KeysOfSection {
    #[serde(default)]
    keys: Vec<String>,
}

/// Returns where the file's signature is, whether or not it is valid.
#[must_use]
pub fn signature_place(file: &Path, wasm: &[u8]) -> Option<SignaturePlace> {
    if !matches!(signature::last_section(wasm), Ok(None)) {
        return Some(SignaturePlace::InFile);
    }
    signature::file_beside(file)
        .exists()
        .then_some(SignaturePlace::Beside)
}

/// Returns the text of the signature in the file itself, whether or not it is valid.
#[must_use]
pub fn embedded_signature(wasm: &[u8]) -> Option<Vec<u8>> {
    let signed = signature::last_section(wasm).ok()??;
    Some(signed.signature().to_vec())
}

/// Returns the part of a component that was signed: everything except the signature at its end, if it has one.
#[must_use]
pub fn signed_content(wasm: &[u8]) -> &[u8] {
    match signature::last_section(wasm) {
        Ok(Some(signed)) => signed.content(),
        _ => wasm,
    }
}

/// Checks the signatures of `file`, whose content `wasm` is the plugin of this name, against the keys of the policy with
/// this text.
///
/// # Errors
/// The policy is not TOML, or a key in it is invalid.
pub fn check_signatures(
    file: &Path,
    wasm: &[u8],
    plugin: &str,
    policy: &str,
) -> Result<SignatureCheck, toml::de::Error> {
    let KeysOfPolicy { keys, plugins } = toml::from_str(policy)?;
    let section = plugins.get(plugin);
    let public: Vec<PublicKey> = keys.public_keys().cloned().collect();
    let signatures = Signatures::load(file, wasm, &public);
    let mut check = SignatureCheck {
        problems: signatures.problems.clone(),
        ..SignatureCheck::default()
    };
    for name in keys.names() {
        if keys.has_signed(name, &signatures) {
            match section {
                Some(section) if !section.keys.contains(name) => {
                    check.problems.push(section.does_not_name(name, plugin));
                }
                _ => check.signers.push(name.clone()),
            }
        } else if keys.is_signed_and_revoked(name, &signatures) {
            check
                .problems
                .push(format!("it is signed with `{name}`, which is revoked"));
        }
    }
    Ok(check)
}

impl KeysOfSection {
    /// Says that a signature with this key does not count, and which would.
    fn does_not_name(&self, key: &str, plugin: &str) -> String {
        let names: Vec<_> = self.keys.iter().map(|name| format!("`{name}`")).collect();
        let names = match names.as_slice() {
            [] => "no key".to_owned(),
            names => names.join(", "),
        };
        format!(
            "it is signed with `{key}`, which the section [plugins.{plugin}] does not name; it names {names}"
        )
    }
}
