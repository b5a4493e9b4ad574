//! Finds the Go packages that bindings in Go are written against: they are part of the crate `wit-bindgen-go`, as files
//! that its code does not contain.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;

/// The packages that the build takes from that crate. A third one, `async`, is the SDK's own.
const PACKAGES: [&str; 2] = ["types", "runtime"];

fn main() -> Result<()> {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=../../Cargo.lock");
    let sources = crate_folder("wit-bindgen-go")?.join("src/pkg/wit");
    let copy = PathBuf::from(variable("OUT_DIR")?).join("go-packages");
    for package in PACKAGES {
        copy_folder(&sources.join(package), &copy.join(package))?;
    }
    Ok(())
}

fn variable(name: &str) -> Result<OsString> {
    env::var_os(name).with_context(|| format!("cargo has not set {name}"))
}

/// Finds the folder in which cargo keeps the sources of a dependency.
fn crate_folder(name: &str) -> Result<PathBuf> {
    let output = Command::new(variable("CARGO")?)
        .args(["metadata", "--format-version", "1", "--filter-platform"])
        .arg(variable("TARGET")?)
        .current_dir(variable("CARGO_MANIFEST_DIR")?)
        .output()
        .context("failed to start cargo")?;
    let problem = String::from_utf8_lossy(&output.stderr);
    ensure!(
        output.status.success(),
        "`cargo metadata` failed: {problem}"
    );
    let metadata: Value = serde_json::from_slice(&output.stdout)?;
    let packages = metadata["packages"].as_array().context("no packages")?;
    packages
        .iter()
        .find(|package| package["name"] == name)
        .and_then(|package| package["manifest_path"].as_str())
        .and_then(|manifest| Path::new(manifest).parent())
        .map(Path::to_owned)
        .with_context(|| format!("cargo knows of no crate `{name}`"))
}

fn copy_folder(from: &Path, to: &Path) -> Result<()> {
    let failed = || format!("cannot copy `{}` to `{}`", from.display(), to.display());
    fs::create_dir_all(to).with_context(failed)?;
    for entry in fs::read_dir(from).with_context(failed)? {
        let entry = entry.with_context(failed)?;
        fs::copy(entry.path(), to.join(entry.file_name())).with_context(failed)?;
    }
    Ok(())
}
