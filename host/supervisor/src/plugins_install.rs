//! `supervisor plugins install FILE`: the lines of the policy that grant what a plugin asks for, the plugin's place on the
//! device, and what the supervisor makes of it.

use anyhow::Result;
use plugins::{
    InstallCheckError, InstallDevice, InstalledPlugins, Placement, SourceFile, check_install,
    install_folder,
};
use serde_json::json;

use crate::arguments::{Flags, PluginFile, Wait};
use crate::configuration::Configuration;
use crate::facts::Board;
use crate::offline_plugins::{self, StoredValues};
use crate::plugin_verdict::PlacedFile;
use crate::plugins_trust::{addition, describe};
use crate::running_supervisor::RunningSupervisor;
use crate::{configuration, output};

/// Checks the plugin, adds the lines to the policy, puts the file into the first plugin folder, and waits for the
/// running supervisor's verdict.
///
/// # Errors
/// The device would refuse the plugin, or the policy or the file cannot be written: then nothing is changed, unless the
/// disk takes the policy and refuses the file. Or the running supervisor refuses the file: then it stays in its place.
pub(crate) fn install(plugin: &PluginFile, wait: Wait, flags: Flags, json: bool) -> Result<()> {
    let configuration = configuration::resolve(flags)?;
    let source = SourceFile::read(&plugin.file)?;
    let (folders, stock) = (&configuration.plugin_dirs, &configuration.stock_plugins);
    let folder = install_folder(&source, folders, stock)?;
    let addition = addition(&source, plugin.key.as_deref(), &configuration)?;
    let installed = InstalledPlugins::read(folders, &addition);
    let placement = Placement::find(&source, folder, &installed)?;
    let board = Board::read(&configuration.device_type, &configuration.host_root).device_type;
    let device = InstallDevice {
        installed: &installed,
        host_root: &configuration.host_root,
        board: &board,
        allow_unpinned: configuration.allow_unpinned,
        data: &StoredValues::new(&configuration.state_dir),
    };
    check_install(&source, &placement, &addition, device)?;
    let is_running = RunningSupervisor::find(&configuration.state_dir)?.is_some();
    if !is_running {
        check_code(&source, addition.policy_text(), &configuration)?;
    }
    // A running supervisor reads the policy before the file that it permits.
    addition.write()?;
    placement.write()?;
    let (name, version) = (&source.manifest.name, &source.manifest.version);
    if !json {
        let what = match &placement.previous {
            Some(previous) => format!("replaced {name} {previous} by {version}"),
            None => format!("installed {name} {version}"),
        };
        output::print(format_args!(
            "{}\n{what}: `{}`\n",
            describe(&addition, &configuration.policy),
            placement.file.display()
        ))?;
    }
    if !is_running && !source.manifest.is_for(&board) {
        output::note(format_args!(
            "{name} {version} is for boards of other types than this one, which is `{board}`: here, no supervisor will load it"
        ));
    }
    let placed = PlacedFile {
        plugin: name,
        version: version.to_string(),
        file: &placement.file,
        digest: &source.digest,
        state_dir: &configuration.state_dir,
    };
    if json {
        return placed.report_verdict_as_json(
            wait.limit(),
            json!({
                "previousVersion": placement.previous.as_ref().map(ToString::to_string),
                "policy": configuration.policy.to_string_lossy(),
                "addedLines": addition.lines(),
            }),
        );
    }
    placed.report_verdict(wait.limit())
}

/// Compiles and links the plugin as a supervisor would. A running supervisor does this itself, and goes on with the
/// previous version if it fails; compiling can take minutes, so it is done only once.
fn check_code(source: &SourceFile, policy: &str, configuration: &Configuration) -> Result<()> {
    match offline_plugins::refusal(configuration, source, policy)? {
        Some(reason) => Err(InstallCheckError::new(source, reason).into()),
        None => Ok(()),
    }
}
