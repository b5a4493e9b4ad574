//! Rust: cargo does everything.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context as _, Result, ensure};

use crate::output::Output;
use crate::project::ProjectFolder;

/// The target of components.
const TARGET: &str = "wasm32-wasip2";

/// Builds the crate in the project's folder.
///
/// # Errors
/// cargo or the target is missing, or cargo failed; it has printed the reason.
pub(crate) fn build(project: &ProjectFolder, output: &Output) -> Result<PathBuf> {
    ensure!(
        project.path.join("Cargo.toml").is_file(),
        "there is no `Cargo.toml` beside plugin.toml"
    );
    add_target(output)?;
    plugin_test_host::try_build(&project.path)
}

/// Has rustup install the target if it is missing. Without rustup, the compiler itself reports what is missing.
fn add_target(output: &Output) -> Result<()> {
    let Ok(installed) = Command::new("rustup")
        .args(["target", "list", "--installed"])
        .output()
    else {
        return Ok(());
    };
    let installed = String::from_utf8_lossy(&installed.stdout);
    if installed.lines().any(|target| target == TARGET) {
        return Ok(());
    }
    output.note(&format!("installing the Rust target {TARGET}"));
    let status = Command::new("rustup")
        .args(["target", "add", TARGET])
        .status()
        .context("failed to start rustup")?;
    ensure!(status.success(), "`rustup target add {TARGET}` failed");
    Ok(())
}
