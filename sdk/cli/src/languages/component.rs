//! A component from another toolchain: only its manifest makes it a plugin.

use std::path::PathBuf;

use anyhow::{Context as _, Result, ensure};
use plugin_manifest::{SECTION, check_beginning, section};

use crate::output::Output;
use crate::project::ProjectFolder;
use crate::toolchain;

/// The default file name of the component.
const DEFAULT: &str = "component.wasm";

/// Runs the command of the project, if it has one, and finds the component.
///
/// # Errors
/// The command fails, or its result is not a component, or is a plugin already.
pub(crate) fn build(project: &ProjectFolder, output: &Output) -> Result<PathBuf> {
    if let Some(line) = &project.project.build.command {
        output.note(&format!("running `{line}`"));
        let mut shell = toolchain::command("sh");
        shell.args(["-c", line]).current_dir(&project.path);
        toolchain::run(&mut shell)
            .with_context(|| format!("the `command` of plugin.toml failed: `{line}`"))?;
    }
    let file = project.source(DEFAULT)?;
    let wasm = std::fs::read(&file).with_context(|| format!("cannot read `{}`", file.display()))?;
    check(&wasm).with_context(|| format!("`{}` cannot become a plugin", file.display()))?;
    Ok(file)
}

/// Checks that a file is a component without a manifest.
///
/// # Errors
/// It is something else, which the error names.
pub(crate) fn check(wasm: &[u8]) -> Result<()> {
    check_beginning(wasm)?;
    ensure!(
        section(wasm, SECTION)?.is_none(),
        "it has a manifest, so it is a plugin already: install it as it is"
    );
    Ok(())
}
