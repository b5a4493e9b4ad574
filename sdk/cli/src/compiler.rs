//! The compiler of plugins, which is a separate program: it drops its privileges before it reads a component.
//!
//! In a layout, `supervisor-compile` is next to this program. Otherwise, this program is also the compiler: it starts
//! itself through a link of that name.

use std::env;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, Result};

/// The name of the program.
const NAME: &str = "supervisor-compile";

/// Acts as the compiler if this program was started as one.
pub(crate) fn run_if_named() -> Option<ExitCode> {
    let started_as = env::args_os().next()?;
    if !is_compiler(&started_as) {
        return None;
    }
    #[cfg(feature = "compiler")]
    return Some(supervisor_compile::main());
    #[cfg(not(feature = "compiler"))]
    {
        crate::output::note_line("this build of supervisor-plugin contains no compiler");
        Some(ExitCode::FAILURE)
    }
}

/// Returns whether this is the name, or a path, of the compiler.
fn is_compiler(started_as: &OsStr) -> bool {
    Path::new(started_as).file_name() == Some(OsStr::new(NAME))
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
    link_in(&cache_folder()?, this)
}

/// Returns the link in `folder` through which the program `this` starts as the compiler.
#[cfg(any(feature = "compiler", test))]
fn link_in(folder: &Path, this: &Path) -> Result<PathBuf> {
    let link = folder.join(NAME);
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
        "there is no `{NAME}` beside `{}`: install the tool with `cargo install --locked --path sdk/cli`, which contains the compiler, \
         or set SUPERVISOR_DIST to a layout",
        this.display()
    )
}

/// Returns the folder that keeps compiled code between runs.
///
/// # Errors
/// The folder around it cannot be created.
pub(crate) fn compiled_code_folder() -> Result<PathBuf> {
    Ok(cache_folder()?.join("compiled"))
}

/// Returns this program's folder for files that a later run can use. Compiled code is useless to other versions of this
/// program, so each version has its own folder.
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

#[cfg(test)]
mod tests {
    use std::fs::{create_dir, read_dir, read_link, write};

    use super::*;

    #[test]
    fn a_link_of_the_compilers_name_starts_the_present_program_as_the_compiler() {
        let folder = tempfile::tempdir().unwrap();
        let (cache, old, new) = ("cache", "old/supervisor-plugin", "new/supervisor-plugin");
        let [cache, old, new] = [cache, old, new].map(|below| folder.path().join(below));
        create_dir(&cache).unwrap();
        // The second start finds the link; after an update, it leads to the program of the former version.
        for this in [&old, &old, &new] {
            let link = link_in(&cache, this).unwrap();
            assert_eq!(&read_link(&link).unwrap(), this);
            assert!(is_compiler(link.as_os_str()));
            assert!(!is_compiler(this.as_os_str()));
        }
        // In place of a file that something else has left there.
        let link = cache.join(NAME);
        std::fs::remove_file(&link).unwrap();
        write(&link, "").unwrap();
        link_in(&cache, &new).unwrap();
        assert_eq!(read_link(&link).unwrap(), new);
        assert_eq!(read_dir(&cache).unwrap().count(), 1, "nothing is left over");
        assert!(link_in(&folder.path().join("none"), &new).is_err());
    }

    #[test]
    fn only_the_whole_name_is_the_compilers() {
        for (name, expected) in [
            ("supervisor-compile", true),
            ("/usr/bin/supervisor-compile", true),
            ("supervisor-plugin", false),
            ("supervisor-compile-2", false),
            ("/supervisor-compile/tool", false),
            ("", false),
        ] {
            assert_eq!(is_compiler(OsStr::new(name)), expected, "{name}");
        }
    }
}
