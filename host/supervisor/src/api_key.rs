//! `supervisor api-key show`: the device's key on standard output, and nothing else there.

use anyhow::Result;

use crate::arguments::Flags;
use crate::{configuration, output};

/// Reads the key even if a supervisor is running; nothing is created or changed.
///
/// # Errors
/// If no supervisor has run on the state folder yet.
pub(crate) fn show(flags: Flags) -> Result<()> {
    let configuration = configuration::resolve(flags)?;
    let key = store::read_global_key(&configuration.state_dir)?;
    output::print(format_args!("{}\n", key.reveal()))
}
