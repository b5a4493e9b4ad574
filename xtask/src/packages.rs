//! Debian packages, which are installed on this machine if we may do so.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, anyhow};

use crate::cargo::finish;

/// A program of the system, or the path of another file, and the Debian package that contains it.
pub(crate) type RequiredPackage = (&'static str, &'static str);

/// Returns the packages of those that are missing on this machine.
fn missing(needed: &[RequiredPackage]) -> Vec<&'static str> {
    let is_missing =
        |(file, _): &&RequiredPackage| !Path::new(file).exists() && program(file).is_none();
    let missing = needed.iter().filter(is_missing);
    missing.map(|(_, package)| *package).collect()
}

/// Installs those that are missing on this machine, if we may do so, in one go, and prints nothing.
///
/// # Errors
/// The command that failed.
pub(crate) fn install_quietly(needed: &[RequiredPackage]) -> Result<()> {
    install(&missing(needed), |mut command| {
        let output = command.stdin(Stdio::null()).output();
        let output = output.context("failed to start apt-get")?;
        if output.status.success() {
            return Ok(());
        }
        let error = String::from_utf8_lossy(&output.stderr);
        Err(anyhow!("apt-get failed: {}", error.trim()))
    })
}

/// Requires all of these on this machine: missing ones are installed if we may do so.
///
/// # Errors
/// Those that are still missing, and why their installation failed if it was tried.
pub(crate) fn require(needed: &[RequiredPackage], what_for: &str) -> Result<()> {
    let installed = install_if_debian_root(&missing(needed), what_for);
    let missing = missing(needed);
    if missing.is_empty() {
        return Ok(());
    }
    let reason = format!("not installed: {}", missing.join(", "));
    match installed {
        Ok(()) => Err(anyhow!(reason)),
        Err(error) => Err(error.context(reason)),
    }
}

/// Installs these, and announces them with `what_for`, if we are root on Debian or a derivative; otherwise does
/// nothing.
pub(crate) fn install_if_debian_root(missing: &[&str], what_for: &str) -> Result<()> {
    if can_install() && !missing.is_empty() {
        println!("installing {} for {what_for}", missing.join(" "));
    }
    install(missing, finish)
}

fn can_install() -> bool {
    rustix::process::geteuid().is_root() && program("apt-get").is_some()
}

/// Installs these if we may do so, with commands that `run` executes.
fn install(missing: &[&str], run: impl Fn(Command) -> Result<()>) -> Result<()> {
    if missing.is_empty() || !can_install() {
        return Ok(());
    }
    let _no_services = NoServices::begin()?;
    let apt_get = |arguments: &[&str]| {
        let mut command = Command::new("apt-get");
        command
            .env("DEBIAN_FRONTEND", "noninteractive")
            .args(["-q", "-y"])
            .args(arguments);
        run(command)
    };
    apt_get(&["update"])?;
    let install = ["install", "--no-install-recommends"];
    apt_get(&[&install, missing].concat())
}

/// Returns the path of a program in the first system folder that has it.
pub(crate) fn program(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&path).chain(["/usr/sbin".into(), "/sbin".into()]);
    folders
        .map(|folder| folder.join(name))
        .find(|file| Path::is_file(file))
}

/// While this value exists, installed packages do not start their services: a second Docker engine would change the
/// machine's firewall.
struct NoServices {
    policy: Option<&'static Path>,
}

impl NoServices {
    fn begin() -> Result<Self> {
        let policy = Path::new("/usr/sbin/policy-rc.d");
        if policy.exists() {
            return Ok(NoServices { policy: None });
        }
        fs::write(policy, "#!/bin/sh\nexit 101\n")
            .and_then(|()| {
                use std::os::unix::fs::PermissionsExt;
                fs::set_permissions(policy, fs::Permissions::from_mode(0o755))
            })
            .with_context(|| format!("failed to write `{}`", policy.display()))?;
        Ok(NoServices {
            policy: Some(policy),
        })
    }
}

impl Drop for NoServices {
    fn drop(&mut self) {
        if let Some(policy) = self.policy {
            let _ = fs::remove_file(policy);
        }
    }
}
