//! `supervisor plugins trust FILE` and `grant FILE`: what a plugin asks for, and the lines of the policy that give it.

use std::path::Path;

use anyhow::Result;

use crate::arguments::Flags;
use crate::configuration;

/// Prints both; changes nothing.
///
/// # Errors
/// Where the file is no plugin.
pub(crate) fn trust(file: &Path, flags: Flags) -> Result<()> {
    let configuration = configuration::resolve(flags)?;
    let lines = plugins::trust_lines(file, &configuration.policy, &configuration.stock_plugins)?;
    print!("{lines}");
    Ok(())
}

/// Adds the lines to the policy, and prints them.
///
/// # Errors
/// The file is no plugin, or the policy decides about it already, is invalid or cannot be written.
pub(crate) fn grant(file: &Path, flags: Flags) -> Result<()> {
    let configuration = configuration::resolve(flags)?;
    let policy = &configuration.policy;
    let anybodys = configuration.allow_unpinned;
    let lines = plugins::grant(file, policy, &configuration.stock_plugins, anybodys)?;
    println!("added to {}:\n\n{}", policy.display(), lines.trim_end());
    Ok(())
}
