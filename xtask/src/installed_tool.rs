//! `supervisor-plugin` as authors install it: with `cargo install`, and then used without this repository.
//!
//! The tests of `sdk/cli` run the program of the layout, which takes its compiler from the program next to it. This one
//! contains the compiler, and is built with its own features only: nearly all of its dependencies are built again, which
//! is why it is not one of the tests.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};

use crate::cargo;

/// Installs the tool into a temporary folder. There it creates a plugin in Rust, builds it, runs its tests, and
/// checks it.
///
/// # Errors
/// Names the command that failed; it has printed the reason.
pub(crate) fn check() -> Result<()> {
    let folder = tempfile::tempdir().context("failed to create a temporary folder")?;
    let root = folder.path().join("root");
    let mut install = cargo::cargo(["install", "--locked", "--debug", "--path", "sdk/cli"]);
    install.arg("--root").arg(&root);
    install.arg("--target-dir");
    install.arg(cargo::target_folder().join("installed-tool"));
    cargo::finish(install)?;

    let run = |arguments: &[&str], in_folder: &Path| {
        let mut command = Command::new(root.join("bin/supervisor-plugin"));
        command.args(arguments).current_dir(in_folder);
        // Neither this repository's settings nor an earlier cache.
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("CARGO_") && name != "CARGO_HOME" {
                command.env_remove(name);
            }
        }
        command.env("XDG_CACHE_HOME", folder.path().join("cache"));
        cargo::finish(command)
    };
    run(&["new", "rails"], folder.path())?;
    let project = folder.path().join("rails");
    for arguments in [&["build"][..], &["test"], &["check"]] {
        run(arguments, &project)?;
    }
    println!("the installed tool has created, built, tested and checked a plugin");
    Ok(())
}
