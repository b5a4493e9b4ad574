//! Builds the plugin under test, so that `cargo test` never tests yesterday's component.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, bail};
use serde_json::Value;

/// The crate of the SDK, as cargo names its library.
const SDK: &str = "supervisor_sdk";

/// A plugin that was built.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BuiltPlugin {
    /// The component.
    pub file: PathBuf,
    /// The version of the SDK that it was built with; absent if it does not use the SDK.
    pub sdk_version: Option<String>,
}

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
    Ok(try_build_plugin(folder)?.file)
}

/// Like [`try_build`], and also returns the version of the SDK.
///
/// # Errors
/// Those of [`try_build`].
pub fn try_build_plugin(folder: &Path) -> Result<BuiltPlugin> {
    try_build_plugin_without_variables(folder, &[])
}

/// Like [`try_build_plugin`], and removes these variables from the environment of cargo, so that no build script can read
/// them.
///
/// # Errors
/// Those of [`try_build`].
pub fn try_build_plugin_without_variables(
    folder: &Path,
    variables: &[&str],
) -> Result<BuiltPlugin> {
    // As in cargo's messages: without `..`.
    let manifest = folder.join("Cargo.toml").canonicalize()?;
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    for variable in variables {
        cargo.env_remove(variable);
    }
    let output = cargo
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
    let messages: Vec<Value> = String::from_utf8_lossy(&output.stdout)
        .lines()
        .filter_map(|line| serde_json::from_str(line).ok())
        .collect();
    let of_this_crate =
        |message: &&Value| message["manifest_path"].as_str().map(Path::new) == Some(&manifest);
    let file = messages
        .iter()
        .filter(of_this_crate)
        .filter_map(|message| message["filenames"].as_array())
        .flatten()
        .filter_map(|file| file.as_str().map(PathBuf::from))
        .find(|file| {
            file.extension()
                .is_some_and(|extension| extension == "wasm")
        })
        .context("it has no component: is `crate-type = [\"cdylib\"]` in its Cargo.toml?")?;
    Ok(BuiltPlugin {
        file,
        sdk_version: messages.iter().find_map(sdk_version),
    })
}

/// Returns the version of the SDK if this message of cargo is about the SDK: the end of a package's id, such as
/// `path+file:///home/ada/rails/supervisor-sdk/sdk#supervisor-sdk@0.1.0`, or without the name if the folder has it.
fn sdk_version(message: &Value) -> Option<String> {
    if message["target"]["name"] != SDK {
        return None;
    }
    let (_, fragment) = message["package_id"].as_str()?.rsplit_once('#')?;
    let version = fragment.rsplit('@').next()?;
    let is_version = version.starts_with(|char: char| char.is_ascii_digit());
    is_version.then(|| version.to_owned())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_version_of_the_sdk_is_in_the_id_of_its_package() {
        let version = |name: &str, id: &str| {
            sdk_version(&json!({ "target": { "name": name }, "package_id": id }))
        };
        for id in [
            "path+file:///home/ada@home/rails/supervisor-sdk/sdk#supervisor-sdk@0.1.0",
            "path+file:///home/ada/supervisor-sdk#0.1.0",
        ] {
            assert_eq!(version(SDK, id).as_deref(), Some("0.1.0"), "{id}");
        }
        assert_eq!(version("rails", "path+file:///home/ada/rails#0.1.0"), None);
        assert_eq!(
            version(SDK, "supervisor-sdk 0.1.0 (path+file:///sdk)"),
            None
        );
        assert_eq!(sdk_version(&json!({ "reason": "build-finished" })), None);
    }
}
