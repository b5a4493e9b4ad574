//! `supervisor plugins trust FILE` and `grant FILE`: a plugin's requests, and the lines of the policy that grant them.

use anyhow::Result;

use crate::arguments::{Flags, PluginFile};
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
    let policy = &configuration.policy;
    let lines = plugins::grant(
        &plugin.file,
        policy,
        &configuration.stock_plugins,
        plugin.key.as_deref(),
        configuration.allow_unpinned,
    )?;
    let report = if lines.is_empty() {
        format!(
            "nothing was added: {} already gives the plugin all that it asks for\n",
            policy.display()
        )
    } else {
        format!("added to {}:\n\n{}\n", policy.display(), lines.trim_end())
    };
    output::print(report)
}
