//! What a file asks of its device, for the owner who has to decide: in plain words, and as the policy lines that grant
//! it.
//!
//! The file comes from a stranger. Its texts are only shown in comments, escaped, so that none of them passes for a
//! line of the policy or for something else in a terminal.

mod key_file;
mod lines;

use std::path::Path;

use crate::keys::NamedKeys;
use crate::section_merge::{extended, merged_section};
use crate::signature::Signatures;
use crate::source_file::{SourceError, SourceFile};
use key_file::{KeyFile, not_signed};
use lines::Lines;

/// Why there are no lines to trust the plugin.
#[derive(Debug, thiserror::Error)]
pub enum TrustError {
    /// The file of the plugin.
    #[error(transparent)]
    Plugin(#[from] SourceError),
    /// The file of its maker's key.
    #[error("`{file}` is not a key that can be trusted: {reason}")]
    Key {
        /// The file.
        file: String,
        /// What is wrong with it.
        reason: String,
    },
    /// The maker's key did not sign the plugin.
    #[error("`{file}` is not signed with {key}: {reason}")]
    NotSigned {
        /// The file of the plugin.
        file: String,
        /// The key, with its file.
        key: String,
        /// What signed the plugin instead, and what to do.
        reason: String,
    },
}

/// Returns what the plugin in `file` asks for, in comments, and the section of the policy that grants it to this file
/// only, or, if a key of the policy has signed the file, to everything signed with that key: TOML that can be added to
/// `policy`. If the policy has a section for the plugin, the lines are that section with what is missing in it, to be put
/// in its place; if nothing is missing, there is no section. `stock_plugins` is the layout's list. `maker_key` is a file
/// with the public key of the plugin's maker: the lines are then for everything signed with that key, and add its name if
/// the policy does not have it yet.
///
/// # Errors
/// [`TrustError`]: a file cannot be read, the plugin has no usable manifest, or it is not signed with the key.
pub fn trust_lines(
    file: &Path,
    policy: &Path,
    stock_plugins: &Path,
    maker_key: Option<&Path>,
) -> Result<String, TrustError> {
    let source = SourceFile::read(file)?;
    let TrustedPlugin {
        name,
        pin,
        request,
        section,
    } = trust(&source, policy, stock_plugins, maker_key)?;
    let present = std::fs::read_to_string(policy).unwrap_or_default();
    let table: toml::Table = present.parse().unwrap_or_default();
    if !has_section(&table, &name) {
        return Ok(request + &section);
    }
    // Otherwise the section of a new key would contain them once more.
    let comments = first_comments(&section);
    let section = section.strip_prefix(comments.as_str()).unwrap_or(&section);
    let mut lines = Lines(request + &comments);
    let (merged, added) = extended(&present, section);
    if added.is_empty() {
        lines.comment(&format!(
            "[plugins.{name}] of the policy grants all of this already."
        ));
        return Ok(lines.0);
    }
    lines.comment(&format!(
        "Put this section in place of [plugins.{name}] of the policy: it has what is missing there."
    ));
    if !is_pinned(&table, &name, &pin) {
        lines.comment(
            "The present section does not pin this file: whatever it grants then applies to this file too.",
        );
    }
    Ok(lines.0 + &merged_section(&merged, &added, &name))
}

/// Returns the comments before the first line that is none.
fn first_comments(lines: &str) -> String {
    let lines = lines.split_inclusive('\n');
    lines.take_while(|line| line.starts_with('#')).collect()
}

/// What a file asks for.
pub(crate) struct TrustedPlugin {
    /// The plugin's name.
    pub(crate) name: String,
    /// How the section pins it: `keys` or `sha256`, and the name or the digest.
    pub(crate) pin: (&'static str, String),
    /// What it asks for, in comments.
    pub(crate) request: String,
    /// The section of the policy that grants it, after that of its maker's key if the policy does not have it yet.
    pub(crate) section: String,
}

/// Like [`trust_lines`], but also returns which plugin the lines are for.
///
/// # Errors
/// [`TrustError`].
pub(crate) fn trust(
    source: &SourceFile,
    policy: &Path,
    stock_plugins: &Path,
    maker_key: Option<&Path>,
) -> Result<TrustedPlugin, TrustError> {
    let manifest = &source.manifest;
    let mut lines = Lines::default();
    lines.describe(manifest);
    let name = &manifest.name;
    if has_section(&table(stock_plugins), name) {
        lines.comment(&format!(
            "`{name}` is the name of a stock plugin: remove that one's file, or neither is loaded."
        ));
    }
    let request = std::mem::take(&mut lines.0);
    let policy = table(policy);
    let named = policy.get("keys").cloned();
    let named: NamedKeys = named
        .and_then(|keys| keys.try_into().ok())
        .unwrap_or_default();
    let mut keys: Vec<_> = named.public_keys().cloned().collect();
    let pin = if let Some(path) = maker_key {
        let failed = |reason| TrustError::Key {
            file: path.display().to_string(),
            reason,
        };
        let maker = KeyFile::read(path).map_err(failed)?;
        keys.push(maker.public.key.clone());
        let signatures = source.signatures(&keys);
        if !signatures.keys.contains(&maker.public.key) {
            return Err(not_signed(source, path, &maker, &named, &signatures));
        }
        lines.pin_by_maker(&named, &maker).map_err(failed)?
    } else {
        lines.pin(&named, &source.signatures(&keys), &source.digest)
    };
    lines.section(manifest, &pin);
    Ok(TrustedPlugin {
        name: manifest.name.clone(),
        pin,
        request,
        section: lines.0,
    })
}

/// Parses a TOML file. One that cannot be read counts as empty, and is refused elsewhere.
pub(crate) fn table(file: &Path) -> toml::Table {
    let text = std::fs::read_to_string(file).unwrap_or_default();
    text.parse().unwrap_or_default()
}

/// Returns whether there is a table `[plugins.NAME]`.
pub(crate) fn has_section(table: &toml::Table, name: &str) -> bool {
    let plugins = table.get("plugins").and_then(toml::Value::as_table);
    plugins.is_some_and(|plugins| plugins.contains_key(name))
}

/// Returns whether the plugin's section names this key or digest.
pub(crate) fn is_pinned(
    policy: &toml::Table,
    plugin: &str,
    (key, value): &(&'static str, String),
) -> bool {
    let section = policy
        .get("plugins")
        .and_then(|plugins| plugins.get(plugin));
    let pins = section.and_then(|section| section.get(key)?.as_array());
    pins.is_some_and(|pins| pins.iter().any(|pin| pin.as_str() == Some(value)))
}

impl Lines {
    /// Shows who has signed it. Returns what the policy can pin it by: a key and its values.
    fn pin(
        &mut self,
        named: &NamedKeys,
        signatures: &Signatures,
        digest: &str,
    ) -> (&'static str, String) {
        if let Some(name) = named.signer(signatures) {
            self.comment(&format!(
                "It is signed with `{name}` of the policy: the lines are for all that this key signs under this name."
            ));
            return ("keys", name.to_owned());
        }
        if signatures.are_there() {
            let reason = named.why_not_signed([], signatures);
            self.comment(&format!("No key of the policy pins it: {reason}."));
            self.comment(
                "To trust its maker's key rather than this file: `supervisor plugins grant FILE --key MAKER.pub`.",
            );
        }
        ("sha256", digest.to_owned())
    }

    /// Names the maker's key, which has signed the plugin, if the policy does not yet. Returns what the plugin is pinned
    /// by.
    ///
    /// # Errors
    /// Why the plugin cannot be pinned by that key.
    fn pin_by_maker(
        &mut self,
        named: &NamedKeys,
        maker: &KeyFile,
    ) -> Result<(&'static str, String), String> {
        if named.is_revoked(&maker.public.key) {
            return Err("the policy has revoked it".to_owned());
        }
        let known = named.name_of(&maker.public.key);
        let name = known.unwrap_or(&maker.name).to_owned();
        if known.is_none() && named.names().any(|other| *other == name) {
            return Err(format!(
                "[keys.{name}] of the policy is another key: give the file another name"
            ));
        }
        self.comment(&format!(
            "It is signed with `{name}`: the lines are for all that this key signs under this name."
        ));
        if known.is_none() {
            self.line(&format!("[keys.{name}]"));
            self.line(&format!("public = \"{}\"", maker.public.base64));
            self.line("");
        }
        Ok(("keys", name))
    }
}

#[cfg(test)]
mod tests;
