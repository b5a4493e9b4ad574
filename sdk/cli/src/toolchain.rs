//! Programs of other languages that a build needs: those that the author has installed, or else copies in the tool's
//! cache, which it installs once, in versions that are known to work.

use std::ffi::OsStr;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, bail};

use crate::compiler::cache_folder;
use crate::output::Output;

/// A package of PyPI, in the version that this tool is tried with.
pub(crate) struct PythonPackage {
    pub(crate) name: &'static str,
    pub(crate) version: &'static str,
}

/// A package of npm, in the version that this tool is tried with.
pub(crate) struct NodePackage {
    pub(crate) name: &'static str,
    pub(crate) version: &'static str,
}

/// The program of this name on the author's path.
fn on_path(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path)
        .map(|folder| folder.join(name))
        .find(|program| program.is_file())
}

/// A program of a Python package: the author's own, or that of the package in the cache.
///
/// # Errors
/// Python is missing, or the package cannot be installed.
pub(crate) fn python_program(
    package: &PythonPackage,
    program: &str,
    output: &Output,
) -> Result<Command> {
    let program = match on_path(program) {
        Some(program) => program,
        None => python_package(package, output)?.join("bin").join(program),
    };
    Ok(Command::new(program))
}

/// A Python package in the cache that is run as a module.
///
/// # Errors
/// Python is missing, or the package cannot be installed.
pub(crate) fn python_module(package: &PythonPackage, output: &Output) -> Result<Command> {
    let mut command = Command::new(python_package(package, output)?.join("bin/python"));
    command.args(["-m", package.name]);
    Ok(command)
}

/// The virtual environment with the package, which is installed once.
fn python_package(package: &PythonPackage, output: &Output) -> Result<PathBuf> {
    let PythonPackage { name, version } = package;
    installed(&format!("{name}-{version}"), |folder| {
        output.note(&format!("installing {name} {version} from PyPI (once)"));
        let python = on_path("python3").context("Python 3 is not installed: install it")?;
        let environment = ["-m", "venv"].map(OsStr::new);
        run(Command::new(python).args(environment).arg(folder)).context(
            "failed to create a virtual environment; on Debian, `apt-get install python3-venv` helps",
        )?;
        let requirement = format!("{name}=={version}");
        run(Command::new(folder.join("bin/pip")).args(["install", "--quiet", &requirement]))
            .with_context(|| format!("failed to install {requirement}"))
    })
}

/// Node.js, as the author has it.
///
/// # Errors
/// It is missing.
pub(crate) fn node() -> Result<Command> {
    let node = on_path("node").context("Node.js is not installed: install it, with npm")?;
    Ok(Command::new(node))
}

/// A folder in which scripts find these packages, which are installed once.
///
/// # Errors
/// npm is missing, or a package cannot be installed.
pub(crate) fn node_packages(packages: &[NodePackage], output: &Output) -> Result<PathBuf> {
    let named = |between: &str| {
        let names = packages
            .iter()
            .map(|package| format!("{}{between}{}", package.name, package.version));
        names.collect::<Vec<_>>()
    };
    installed(&named("-").join("-"), |folder| {
        output.note(&format!(
            "installing {} from npm (once)",
            named(" ").join(" and ")
        ));
        let npm = on_path("npm").context("npm is not installed: install it, with Node.js")?;
        std::fs::create_dir_all(folder)?;
        // Scripts of packages are other people's programs, and these packages need none.
        run(Command::new(npm)
            .args(["install", "--ignore-scripts", "--no-audit", "--no-fund"])
            .args(["--loglevel", "error", "--prefix"])
            .arg(folder)
            .args(named("@")))
        .with_context(|| format!("failed to install {}", named("@").join(" ")))
    })
}

/// A folder of the cache which `install` fills once.
fn installed(name: &str, install: impl FnOnce(&Path) -> Result<()>) -> Result<PathBuf> {
    let cache = cache_folder()?;
    let folder = cache.join(name);
    let mark = folder.join("installed");
    // Until this is dropped, other builds wait: none takes half an installation for a whole one.
    let _lock = lock(&cache)?;
    if mark.is_file() {
        return Ok(folder);
    }
    // Left over from an installation that was ended.
    if folder.exists() {
        std::fs::remove_dir_all(&folder)
            .with_context(|| format!("cannot remove `{}`", folder.display()))?;
    }
    install(&folder)?;
    File::create(&mark).with_context(|| format!("cannot write `{}`", mark.display()))?;
    Ok(folder)
}

/// Waits for its turn to install something into the cache.
fn lock(cache: &Path) -> Result<File> {
    let path = cache.join("installing.lock");
    let failed = || format!("cannot lock `{}`", path.display());
    let file = File::create(&path).with_context(failed)?;
    file.lock().with_context(failed)?;
    Ok(file)
}

/// Runs a program of a build, whose own messages the author sees.
///
/// # Errors
/// It cannot be started, or fails.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    let mut arguments = command.get_args();
    // A module of Python is a program of its own to the author.
    let name = match (arguments.next(), arguments.next()) {
        (Some(first), Some(module)) if first == "-m" => module,
        _ => Path::new(command.get_program())
            .file_name()
            .unwrap_or_default(),
    };
    let name = name.to_string_lossy().into_owned();
    let status = command
        .stdin(Stdio::null())
        // Standard output is for results.
        .stdout(Stdio::from(std::io::stderr()))
        .status()
        .with_context(|| format!("failed to start `{name}`"))?;
    if !status.success() {
        bail!("`{name}` failed ({status})");
    }
    Ok(())
}
