//! `supervisor plugins rollback NAME`: the previously used version of a plugin.

use anyhow::Result;
use plugins::RollbackFolders;

use crate::arguments::Flags;
use crate::{configuration, output};

/// Restores the previous version, and prints what has changed.
///
/// # Errors
/// If there is none, or if the policy does not allow loading it; then nothing has changed.
pub(crate) fn rollback(name: &str, flags: Flags) -> Result<()> {
    let configuration = configuration::resolve(flags)?;
    let plugins::Rollback { file, to, from } = plugins::rollback(
        name,
        RollbackFolders {
            state_dir: &configuration.state_dir,
            policy: &configuration.policy,
            stock_plugins: &configuration.stock_plugins,
            host_root: &configuration.host_root,
            allow_unpinned: configuration.allow_unpinned,
        },
    )?;
    let from = from.map_or_else(
        || "a file that is not a plugin".to_owned(),
        |from| from.to_string(),
    );
    output::print(format_args!(
        "`{name}` went back from {from} to {to}: `{}`\na running supervisor loads it at once\n",
        file.display()
    ))
}
