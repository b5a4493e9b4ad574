//! The compiler of plugins, which is a separate program: it drops its privileges before it reads a component.
//!
//! In a layout, `supervisor-compile` is next to this program. Otherwise, this program is also the compiler: it starts
//! itself through a link of that name.

use std::env;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, Result};

/// The name of the program.
const NAME: &str = "supervisor-compile";

/// Acts as the compiler if this program was started as one.
pub(crate) fn run_if_named() -> Option<ExitCode> {
    let started_as = env::args_os().next()?;
    if Path::new(&started_as).file_name()? != NAME {
        return None;
    }
    #[cfg(feature = "compiler")]
    return Some(supervisor_compile::main());
    #[cfg(not(feature = "compiler"))]
    {
        eprintln!("this build of supervisor-plugin contains no compiler");
        Some(ExitCode::FAILURE)
    }
}

/// Returns the path of the program that compiles plugins.
///
/// # Errors
/// There is none: this program neither is in a layout nor contains the compiler.
pub(crate) fn program() -> Result<PathBuf> {
    let this = env::current_exe().context("failed to find this program's own file")?;
    let in_layout = env::var_os("SUPERVISOR_DIST").map(|dist| PathBuf::from(dist).join("bin"));
    let beside = this.parent().map(Path::to_owned);
    for folder in in_layout.into_iter().chain(beside) {
        let program = folder.join(NAME);
        if program.is_file() {
            return Ok(program);
        }
    }
    linked(&this)
}

#[cfg(feature = "compiler")]
fn linked(this: &Path) -> Result<PathBuf> {
    let link = cache_folder()?.join(NAME);
    let points_here = std::fs::read_link(&link).is_ok_and(|target| target == this);
    if !points_here {
        // Another process may be replacing the link at the same time.
        let new = link.with_extension(std::process::id().to_string());
        std::os::unix::fs::symlink(this, &new)
            .and_then(|()| std::fs::rename(&new, &link))
            .with_context(|| format!("failed to create the link `{}`", link.display()))?;
    }
    Ok(link)
}

#[cfg(not(feature = "compiler"))]
fn linked(this: &Path) -> Result<PathBuf> {
    anyhow::bail!(
        "there is no `{NAME}` beside `{}`: install the tool with `cargo install --path sdk/cli`, which contains the compiler, \
         or set SUPERVISOR_DIST to a layout",
        this.display()
    )
}

/// Returns the folder that keeps compiled code between runs. It is useless to other versions of this program, so each
/// version has its own folder.
///
/// # Errors
/// The folder cannot be created.
pub(crate) fn cache_folder() -> Result<PathBuf> {
    let base = env::var_os("XDG_CACHE_HOME")
        .map(PathBuf::from)
        .filter(|folder| folder.is_absolute())
        .or_else(|| env::var_os("HOME").map(|home| Path::new(&home).join(".cache")))
        .unwrap_or_else(env::temp_dir);
    let folder = base
        .join("supervisor-plugin")
        .join(env!("CARGO_PKG_VERSION"));
    std::fs::create_dir_all(&folder)
        .with_context(|| format!("failed to create the folder `{}`", folder.display()))?;
    Ok(folder)
}
