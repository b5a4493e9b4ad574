//! Calls to cargo and rustup, whose progress is shown.

use std::env;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

/// The target that plugins and wasm services are built for.
pub(crate) const WASM_TARGET: &str = "wasm32-wasip2";

/// Returns the repository, which is the folder above this crate's.
pub(crate) fn repository() -> PathBuf {
    // Read at run time, where cargo sets it: a program in a target folder that moved with its repository contains the
    // old path.
    let xtask = env::var_os("CARGO_MANIFEST_DIR")
        .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")), PathBuf::from);
    xtask.parent().unwrap_or(&xtask).to_owned()
}

/// Returns cargo's target folder, which the environment may have moved.
pub(crate) fn target_folder() -> PathBuf {
    env::var_os("CARGO_TARGET_DIR").map_or_else(|| repository().join("target"), PathBuf::from)
}

/// Returns a cargo command in the repository.
pub(crate) fn cargo<I: IntoIterator<Item = S>, S: AsRef<std::ffi::OsStr>>(arguments: I) -> Command {
    let mut command = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(repository()).args(arguments);
    // Cargo's variables about xtask itself: build scripts that read them (ring's does) would run again whenever cargo
    // is called alternately by hand and from here.
    let own = env::vars_os().map(|(name, _)| name);
    for name in own.filter(|name| {
        let name = name.to_string_lossy();
        name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_")
    }) {
        command.env_remove(name);
    }
    command
}

/// Runs the command to its end; the error names the command.
pub(crate) fn finish(mut command: Command) -> Result<()> {
    let command_line = shown(&command);
    let status = command
        .stdin(Stdio::null())
        .status()
        .with_context(|| format!("failed to start `{command_line}`; is it installed?"))?;
    if !status.success() {
        bail!("`{command_line}` failed ({status})");
    }
    Ok(())
}

fn shown(command: &Command) -> String {
    let program = Path::new(command.get_program());
    std::iter::once(program.file_name().unwrap_or_default())
        .chain(command.get_args())
        .map(|word| word.to_string_lossy())
        .collect::<Vec<_>>()
        .join(" ")
}

/// Installs the standard library of `target` with rustup if it is missing.
pub(crate) fn add_target(target: &str) -> Result<()> {
    let mut list = Command::new("rustup");
    list.current_dir(repository())
        .args(["target", "list", "--installed"]);
    let installed = list
        .output()
        .context("failed to start `rustup`; install it from https://rustup.rs")?;
    if String::from_utf8_lossy(&installed.stdout)
        .lines()
        .any(|line| line == target)
    {
        return Ok(());
    }
    println!("adding the target {target}");
    let mut add = Command::new("rustup");
    add.current_dir(repository())
        .args(["target", "add", target]);
    finish(add)
}

/// Announces the steps, each with its number and the total, above cargo's own progress.
pub(crate) struct Steps {
    total: usize,
    begun: usize,
}

impl Steps {
    pub(crate) fn new(total: usize) -> Self {
        Steps { total, begun: 0 }
    }

    pub(crate) fn begin(&mut self, what: &str) {
        self.begun += 1;
        println!("[{}/{}] {what}", self.begun, self.total);
    }
}
