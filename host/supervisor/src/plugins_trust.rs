//! `supervisor plugins trust FILE` and `grant FILE`: a plugin's requests, and the lines of the policy that grant them.

use std::path::Path;

use anyhow::Result;
use plugins::{PolicyAddition, SourceFile};

use crate::arguments::{Flags, PluginFile};
use crate::configuration::Configuration;
use crate::{configuration, output};

/// Prints both; changes nothing.
///
/// # Errors
/// The file is not a plugin, or is not signed with the key.
pub(crate) fn trust(plugin: &PluginFile, flags: Flags) -> Result<()> {
    let configuration = configuration::resolve(flags)?;
    let lines = plugins::trust_lines(
        &plugin.file,
        &configuration.policy,
        &configuration.stock_plugins,
        plugin.key.as_deref(),
    )?;
    output::print(lines)
}

/// Adds the lines to the policy, and prints them.
///
/// # Errors
/// The file is not a plugin or is not signed with the key, or the policy has a section of this name for other files, is
/// invalid or cannot be written.
pub(crate) fn grant(plugin: &PluginFile, flags: Flags) -> Result<()> {
    let configuration = configuration::resolve(flags)?;
    let source = SourceFile::read(&plugin.file)?;
    let addition = addition(&source, plugin.key.as_deref(), &configuration)?;
    addition.write()?;
    output::print(describe(&addition, &configuration.policy))
}

/// Finds out what has to be added to the policy for a plugin.
///
/// # Errors
/// Those of [`grant`], except that it cannot be written.
pub(crate) fn addition(
    source: &SourceFile,
    key: Option<&Path>,
    configuration: &Configuration,
) -> Result<PolicyAddition> {
    let addition = PolicyAddition::find(
        source,
        &configuration.policy,
        &configuration.stock_plugins,
        key,
        configuration.allow_unpinned,
    );
    Ok(addition?)
}

/// Says what is added to the policy.
pub(crate) fn describe(addition: &PolicyAddition, policy: &Path) -> String {
    let lines = addition.lines();
    if lines.is_empty() {
        return format!(
            "nothing was added: {} already gives the plugin all that it asks for\n",
            policy.display()
        );
    }
    let mut text = format!("added to {}:\n\n{}\n", policy.display(), lines.trim_end());
    let empty = empty_lists(lines);
    if !empty.is_empty() {
        let lists = empty.join(", ");
        text += &format!(
            "\nFill in there what the plugin may reach: {lists}. Until then, such calls are refused.\n"
        );
    }
    text
}

/// Returns the keys of a section whose lists only the owner can fill in, in backticks.
fn empty_lists(section: &str) -> Vec<String> {
    let lines = section.lines().filter(|line| !line.starts_with('#'));
    let keys = lines.filter_map(|line| Some(line.split_once(" = []")?.0));
    keys.map(|key| format!("`{key}`")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_that_only_the_owner_can_fill_in_are_named() {
        let section = "# text = []\n[plugins.panel]\nsha256 = [\"00\"]\nactions = []  # the actions\nroutes = [\"/v3/panel\"]\napi = []\n";
        assert_eq!(empty_lists(section), ["`actions`", "`api`"]);
        assert_eq!(empty_lists("[plugins.panel]\nsha256 = [\"00\"]\n"), [""; 0]);
    }
}
