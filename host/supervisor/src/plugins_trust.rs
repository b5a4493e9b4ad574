//! `supervisor plugins trust FILE` and `grant FILE`: a plugin's requests, and the lines of the policy that grant them.

use anyhow::Result;

use crate::arguments::{Flags, PluginFile};
use crate::configuration;

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
    print!("{lines}");
    Ok(())
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
    if lines.is_empty() {
        println!(
            "nothing was added: {} already gives the plugin all that it asks for",
            policy.display()
        );
    } else {
        println!("added to {}:\n\n{}", policy.display(), lines.trim_end());
    }
    Ok(())
}
