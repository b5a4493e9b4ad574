//! `supervisor plugins trust FILE`: what a plugin asks for, and the lines of the policy that give it.

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
