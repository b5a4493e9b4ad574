//! `supervisor plugins trust FILE`, `grant FILE` and `install FILE`: a plugin's requests, the lines of the policy that
//! grant them, and the plugin's place on the device.

use anyhow::Result;
use plugins::Placement;

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
    output::print(granted(plugin, &configuration)?)
}

/// Adds the lines to the policy as well, and puts the file into the first plugin folder.
///
/// # Errors
/// Those of [`grant`], and if the file cannot be put there. Whether it can is checked first, so a failure leaves the
/// policy unchanged, unless the disk refuses the file.
pub(crate) fn install(plugin: &PluginFile, flags: Flags) -> Result<()> {
    let configuration = configuration::resolve(flags)?;
    let placement = Placement::find(
        &plugin.file,
        &configuration.plugin_dirs,
        &configuration.stock_plugins,
    )?;
    // A running supervisor reads the policy before the file that it permits.
    let grants = granted(plugin, &configuration)?;
    placement.write()?;
    let Placement {
        plugin: name,
        version,
        previous,
        file,
        ..
    } = &placement;
    let what = match previous {
        Some(previous) => format!("replaced {name} {previous} by {version}"),
        None => format!("installed {name} {version}"),
    };
    output::print(format_args!(
        "{grants}\n{what}: `{}`\na running supervisor loads it within seconds, or minutes if it is large; `supervisor plugins \
         list` says whether it has\n",
        file.display()
    ))
}

/// Adds the lines to the policy, and says which.
fn granted(plugin: &PluginFile, configuration: &Configuration) -> Result<String> {
    let policy = &configuration.policy;
    let lines = plugins::grant(
        &plugin.file,
        policy,
        &configuration.stock_plugins,
        plugin.key.as_deref(),
        configuration.allow_unpinned,
    )?;
    if lines.is_empty() {
        return Ok(format!(
            "nothing was added: {} already gives the plugin all that it asks for\n",
            policy.display()
        ));
    }
    let mut text = format!("added to {}:\n\n{}\n", policy.display(), lines.trim_end());
    let empty = empty_lists(&lines);
    if !empty.is_empty() {
        let lists = empty.join(", ");
        text += &format!(
            "\nFill in there what the plugin may reach: {lists}. Until then, such calls are refused.\n"
        );
    }
    Ok(text)
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
