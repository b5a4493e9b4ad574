//! Calls to cargo and rustup, with their progress shown.

use std::env;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

/// The target that plugins and wasm services are built for.
pub(crate) const WASM_TARGET: &str = "wasm32-wasip2";

/// The repository: the folder above this crate's.
pub(crate) fn repository() -> PathBuf {
    // Asked at run time, as cargo sets it: a target folder that moved with its repository has the old path built in.
    let xtask = env::var_os("CARGO_MANIFEST_DIR")
        .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")), PathBuf::from);
    xtask.parent().unwrap_or(&xtask).to_owned()
}

/// Cargo's target folder, which the environment may have moved.
pub(crate) fn target_folder() -> PathBuf {
    env::var_os("CARGO_TARGET_DIR").map_or_else(|| repository().join("target"), PathBuf::from)
}

/// A cargo command in the repository.
pub(crate) fn cargo<I: IntoIterator<Item = S>, S: AsRef<std::ffi::OsStr>>(arguments: I) -> Command {
    let mut command = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(repository()).args(arguments);
    // What cargo says of xtask itself: build scripts that ask for it (ring's does) would run anew whenever
    // cargo is called now by hand and now from here.
    let own = env::vars_os().map(|(name, _)| name);
    for name in own.filter(|name| {
        let name = name.to_string_lossy();
        name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_")
    }) {
        command.env_remove(name);
    }
    command
}

/// Runs to the end; a failure names the command.
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

/// Makes sure that rustup has the standard library of `target`.
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

/// Says which step of how many begins, above cargo's own progress.
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
