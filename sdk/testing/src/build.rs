//! Builds the plugin under test, so that `cargo test` never tests yesterday's component.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, bail};
use serde_json::Value;

/// Builds the plugin whose `Cargo.toml` is in `folder` (`env!("CARGO_MANIFEST_DIR")`) with the profile
/// `wasm` (see docs/plugins.md) for `wasm32-wasip2`, and returns its file.
///
/// # Panics
/// If it does not build; cargo's messages are on the standard error output.
#[must_use]
pub fn build(folder: impl AsRef<Path>) -> PathBuf {
    let folder = folder.as_ref();
    try_build(folder).unwrap_or_else(|error| {
        panic!(
            "failed to build the plugin in `{}`: {error:#}",
            folder.display()
        )
    })
}

/// Like [`build`], for programs.
///
/// # Errors
/// If it does not build; cargo's messages are on the standard error output.
pub fn try_build(folder: &Path) -> Result<PathBuf> {
    // As in cargo's messages: without `..`.
    let manifest = folder.join("Cargo.toml").canonicalize()?;
    let output = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
        .args(["build", "--profile", "wasm", "--target", "wasm32-wasip2"])
        .args([
            "--message-format",
            "json-render-diagnostics",
            "--manifest-path",
        ])
        .arg(&manifest)
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output()
        .context("cannot run cargo")?;
    if !output.status.success() {
        bail!("cargo failed ({})", output.status);
    }
    // One JSON object per line; the component is what cargo built from this very manifest.
    let of_this_crate =
        |message: &Value| message["manifest_path"].as_str().map(Path::new) == Some(&manifest);
    String::from_utf8_lossy(&output.stdout)
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok())
        .filter(of_this_crate)
        .flat_map(|message| message["filenames"].as_array().cloned().unwrap_or_default())
        .filter_map(|file| file.as_str().map(PathBuf::from))
        .find(|file| {
            file.extension()
                .is_some_and(|extension| extension == "wasm")
        })
        .context("it has no component: is `crate-type = [\"cdylib\"]` in its Cargo.toml?")
}
