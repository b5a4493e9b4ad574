//! `supervisor plugins rollback NAME`: the previously used version of a plugin.

use anyhow::Result;
use plugins::RollbackFolders;
use serde_json::json;

use crate::arguments::{Flags, Wait};
use crate::plugin_verdict::PlacedFile;
use crate::{configuration, output};

/// Restores the previous version, prints what has changed, and waits for the running supervisor's verdict.
///
/// # Errors
/// If there is none, or if the policy does not allow loading it; then nothing has changed. Or the running supervisor
/// refuses the version.
pub(crate) fn rollback(name: &str, wait: Wait, flags: Flags, json: bool) -> Result<()> {
    let configuration = configuration::resolve(flags)?;
    let plugins::Rollback {
        file,
        digest,
        to,
        from,
    } = plugins::rollback(
        name,
        RollbackFolders {
            state_dir: &configuration.state_dir,
            plugin_dirs: &configuration.plugin_dirs,
            policy: &configuration.policy,
            stock_plugins: &configuration.stock_plugins,
            host_root: &configuration.host_root,
            allow_unpinned: configuration.allow_unpinned,
        },
    )?;
    let from = from.map(|from| from.to_string());
    let placed = PlacedFile {
        plugin: name,
        version: to.to_string(),
        file: &file,
        digest: &digest,
        state_dir: &configuration.state_dir,
    };
    if json {
        let changes = json!({ "previousVersion": from });
        return placed.report_verdict_as_json(wait.limit(), changes);
    }
    output::print(format_args!(
        "restored {name} {to} in place of {}: `{}`\n",
        from.as_deref().unwrap_or("a file that is not a plugin"),
        file.display()
    ))?;
    placed.report_verdict(wait.limit())
}
