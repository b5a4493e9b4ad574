//! Programs of other languages that a build needs: those that the author has installed, or copies in the tool's cache,
//! which it installs once, in versions that are known to work.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};

use anyhow::{Context as _, Result, ensure};
use include_dir::{Dir, include_dir};

use crate::arguments::{DEVICE_KEY, KEY_PASSWORD};
use crate::compiler::cache_folder;
use crate::files::{write_file, write_folder};
use crate::output::Output;

/// What may be installed, with the hashes of its files: a requirements file of pip for each Python package, and a folder
/// with the lock file of npm for each set of npm packages. A package index that serves other files is refused.
///
/// The hashes of a new version are those of <https://pypi.org/simple/NAME/>, and those that `npm install
/// --package-lock-only` writes.
static HASHES: Dir = include_dir!("$CARGO_MANIFEST_DIR/src/toolchain");

/// A PyPI package, in the version that this tool is tested with.
pub(crate) struct PythonPackage {
    pub(crate) name: &'static str,
    pub(crate) version: &'static str,
}

/// An npm package, in the version that this tool is tested with.
pub(crate) struct NodePackage {
    pub(crate) name: &'static str,
    pub(crate) version: &'static str,
}

/// Python's options for running a module. By default, Python looks for modules in the current folder first, and a project
/// of somebody else could contain one of the same name.
const MODULE: [&str; 2] = ["-I", "-m"];

/// The variables with secrets of the author.
pub(crate) const SECRETS: [&str; 2] = [KEY_PASSWORD, DEVICE_KEY];

/// Returns a command that runs a program without the author's secrets in its environment: a build runs code of other
/// people, such as the build scripts of packages. All programs of builds are started with this function.
pub(crate) fn command(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(program);
    for secret in SECRETS {
        command.env_remove(secret);
    }
    command
}

/// Returns the program of this name on the author's path.
fn on_path(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path)
        .map(|folder| folder.join(name))
        .find(|program| program.is_file())
}

/// Returns a program of a Python package: the author's own, or that of the package in the cache.
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
    Ok(command(program))
}

/// Returns a command that runs a Python package in the cache as a module.
///
/// # Errors
/// Python is missing, or the package cannot be installed.
pub(crate) fn python_module(package: &PythonPackage, output: &Output) -> Result<Command> {
    let mut command = command(python_package(package, output)?.join("bin/python"));
    command.args(MODULE).arg(package.name);
    Ok(command)
}

/// Returns the virtual environment with the package, which is installed once.
fn python_package(package: &PythonPackage, output: &Output) -> Result<PathBuf> {
    let PythonPackage { name, version } = package;
    installed(&format!("{name}-{version}"), |folder| {
        output.note(&format!("installing {name} {version} from PyPI (once)"));
        let python = on_path("python3").context("Python 3 is not installed: install it")?;
        run(command(python).args(MODULE).arg("venv").arg(folder)).context(
            "failed to create a virtual environment; on Debian, `apt-get install python3-venv` helps",
        )?;
        let hashes = HASHES.get_file(format!("{name}-{version}.txt"));
        let hashes =
            hashes.with_context(|| format!("this tool contains no hashes of {name} {version}"))?;
        let requirements = folder.join("requirements.txt");
        write_file(&requirements, hashes.contents())?;
        run(command(folder.join("bin/pip"))
            .args(["install", "--quiet", "--require-hashes"])
            // The source of a package would run its author's build script.
            .args(["--only-binary", ":all:", "--requirement"])
            .arg(requirements))
        .with_context(|| format!("failed to install {name}=={version}"))
    })
}

/// Returns the author's Node.js.
///
/// # Errors
/// It is missing.
pub(crate) fn node() -> Result<Command> {
    let node = on_path("node").context("Node.js is not installed: install it, with npm")?;
    Ok(command(node))
}

/// Returns a folder in which scripts find these packages, which are installed once.
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
        let set = named("-").join("-");
        let hashes = HASHES.get_dir(&set);
        let hashes = hashes.with_context(|| format!("this tool contains no hashes of {set}"))?;
        write_folder(folder, hashes)?;
        // Install scripts are other people's programs, and these packages do not need any.
        run(command(npm)
            // In the versions of the lock file, and only with its hashes.
            .args(["ci", "--ignore-scripts", "--no-audit", "--no-fund"])
            .args(["--loglevel", "error", "--prefix"])
            .arg(folder))
        .with_context(|| format!("failed to install {}", named("@").join(" ")))
    })
}

/// Returns a folder of the cache which `install` fills once.
fn installed(name: &str, install: impl FnOnce(&Path) -> Result<()>) -> Result<PathBuf> {
    let cache = cache_folder()?;
    let folder = cache.join(name);
    let mark = folder.join("installed");
    // Other builds wait until this is dropped, so that none uses an incomplete installation.
    let _lock = lock(&cache)?;
    if mark.is_file() {
        return Ok(folder);
    }
    // The remains of an interrupted installation.
    if folder.exists() {
        std::fs::remove_dir_all(&folder)
            .with_context(|| format!("cannot remove `{}`", folder.display()))?;
    }
    install(&folder)?;
    File::create(&mark).with_context(|| format!("cannot write `{}`", mark.display()))?;
    Ok(folder)
}

/// Waits for the exclusive right to install something into the cache.
fn lock(cache: &Path) -> Result<File> {
    let path = cache.join("installing.lock");
    let failed = || format!("cannot lock `{}`", path.display());
    let file = File::create(&path).with_context(failed)?;
    file.lock().with_context(failed)?;
    Ok(file)
}

/// The error of a build whose compiler has printed the reason. The name of the compiler and its exit status mean nothing
/// to an author.
pub(crate) const FAILED: &str = "build failed: the compiler's messages are above";

/// The most of a compiler's output that is read, in bytes.
const OUTPUT: u64 = 256 << 10;

/// Runs a compiler; the author sees its messages.
///
/// # Errors
/// It cannot be started, or fails.
pub(crate) fn compile(command: &mut Command) -> Result<()> {
    let name = name(command);
    ensure!(status(command, &name)?.success(), FAILED);
    Ok(())
}

/// Runs a compiler that writes more than an author needs. All of its output is put into the file `log`.
///
/// # Errors
/// It cannot be started, or `log` cannot be written.
pub(crate) fn compile_into(command: &mut Command, log: &Path) -> Result<LoggedRun> {
    let name = name(command);
    let failed = || format!("cannot write `{}`", log.display());
    let file = File::create(log).with_context(failed)?;
    let errors = file.try_clone().with_context(failed)?;
    let status = command
        .stdin(Stdio::null())
        .stdout(file)
        .stderr(errors)
        .status()
        .with_context(|| format!("failed to start `{name}`"))?;
    let mut output = Vec::new();
    File::open(log)
        .and_then(|mut file| {
            let length = file.metadata()?.len();
            // The reason for a failure is at the end.
            file.seek(SeekFrom::Start(length.saturating_sub(OUTPUT)))?;
            file.take(OUTPUT).read_to_end(&mut output)
        })
        .with_context(|| format!("cannot read `{}`", log.display()))?;
    Ok(LoggedRun {
        succeeded: status.success(),
        output: String::from_utf8_lossy(&output).into_owned(),
    })
}

/// The result of a compiler whose output was put into a file.
pub(crate) struct LoggedRun {
    pub(crate) succeeded: bool,
    /// The end of its output.
    pub(crate) output: String,
}

/// Runs a program that a build needs, such as one that installs the compiler; the author sees its messages.
///
/// # Errors
/// It cannot be started, or fails.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    let name = name(command);
    let status = status(command, &name)?;
    ensure!(status.success(), "`{name}` failed ({status})");
    Ok(())
}

/// Runs a program and returns the line that it writes to standard output; the author sees its messages.
///
/// # Errors
/// It cannot be started, or fails, or writes something other than text.
pub(crate) fn line(command: &mut Command) -> Result<String> {
    let name = name(command);
    let run = command
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output()
        .with_context(|| format!("failed to start `{name}`"))?;
    ensure!(run.status.success(), "`{name}` failed ({})", run.status);
    let text = String::from_utf8(run.stdout)
        .with_context(|| format!("`{name}` has written something other than text"))?;
    Ok(text.trim_end().to_owned())
}

fn status(command: &mut Command, name: &str) -> Result<ExitStatus> {
    command
        .stdin(Stdio::null())
        // Standard output is for results.
        .stdout(Stdio::from(std::io::stderr()))
        .status()
        .with_context(|| format!("failed to start `{name}`"))
}

/// Returns the name of a program. To the author, a Python module is a program.
fn name(command: &Command) -> String {
    let arguments: Vec<&OsStr> = command.get_args().take(MODULE.len() + 1).collect();
    let name = match arguments.as_slice() {
        [options @ .., module] if options == MODULE.map(OsStr::new) => module,
        _ => Path::new(command.get_program())
            .file_name()
            .unwrap_or_default(),
    };
    name.to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use clap::CommandFactory as _;
    use serde_json::Value;

    use super::*;
    use crate::arguments::Arguments;

    #[test]
    fn no_program_gets_a_secret_that_the_tool_accepts_in_a_variable() {
        let tool = Arguments::command();
        let arguments = tool.get_subcommands().flat_map(|it| it.get_arguments());
        let secrets: BTreeSet<&OsStr> = arguments.filter_map(|it| it.get_env()).collect();
        assert_eq!(secrets.len(), 2, "{secrets:?}");
        let command = command("cargo");
        let variables: BTreeSet<(&OsStr, Option<&OsStr>)> = command.get_envs().collect();
        // `None` stands for a variable that is removed.
        let removed: BTreeSet<_> = secrets.into_iter().map(|it| (it, None)).collect();
        assert_eq!(variables, removed);
    }

    #[test]
    fn a_module_of_python_is_a_program_to_the_author() {
        let mut zig = Command::new("/cache/bin/python");
        zig.args(MODULE).args(["ziglang", "cc", "-m"]);
        assert_eq!(name(&zig), "ziglang");
        let mut node = Command::new("/usr/bin/node");
        node.args(["-m", "script.mjs", "x"]);
        assert_eq!(name(&node), "node");
    }

    #[test]
    fn each_package_that_is_installed_has_hashes() {
        let mut python = 0;
        for file in HASHES.files() {
            let path = file.path().display();
            let text = file.contents_utf8().unwrap();
            let (requirement, hashes) = text.split_once(" \\\n").unwrap();
            assert!(requirement.contains("=="), "{path}: {requirement}");
            for line in hashes.lines() {
                let hash = line.trim().trim_end_matches(" \\");
                let hash = hash.strip_prefix("--hash=sha256:").unwrap();
                let is_hash = hash.len() == 64 && hash.bytes().all(|byte| byte.is_ascii_hexdigit());
                assert!(is_hash, "{path}: {line}");
            }
            python += 1;
        }
        assert_eq!(python, 3);
        for folder in HASHES.dirs() {
            let lock = HASHES.get_file(folder.path().join("package-lock.json"));
            let lock: Value = serde_json::from_slice(lock.unwrap().contents()).unwrap();
            let packages = lock["packages"].as_object().unwrap();
            assert!(packages.len() > 2, "{lock}");
            for (name, package) in packages {
                let integrity = package["integrity"].as_str().unwrap_or_default();
                // The first is the project itself.
                let is_hashed = integrity.starts_with("sha512-");
                assert!(name.is_empty() || is_hashed, "{name}: {package}");
            }
        }
    }
}
