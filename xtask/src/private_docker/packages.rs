//! The programs that a private engine needs, and where they come from.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::cargo::finish;

use super::program;

/// Program and Debian package.
const NEEDED: [(&str, &str); 7] = [
    ("dockerd", "docker.io"),
    ("containerd", "containerd"),
    ("iptables", "iptables"),
    ("ip", "iproute2"),
    ("umount", "mount"),
    ("busybox", "busybox-static"),
    ("docker-registry", "docker-registry"),
];

/// Says what this machine lacks.
pub(super) fn check() -> Result<()> {
    if !cfg!(target_os = "linux") {
        bail!("a private Docker engine needs Linux");
    }
    if !rustix::process::geteuid().is_root() {
        bail!("a private Docker engine needs root");
    }
    let missing = missing();
    if !missing.is_empty() {
        bail!("not installed: {}", missing.join(", "));
    }
    Ok(())
}

fn missing() -> Vec<&'static str> {
    NEEDED
        .iter()
        .filter(|(name, _)| program(name).is_none())
        .map(|(_, package)| *package)
        .collect()
}

/// Installs what is missing, saying so, where we are root on Debian or a relative; else does nothing.
pub(crate) fn install_packages_if_debian_root() -> Result<()> {
    let missing = missing();
    if missing.is_empty() || !rustix::process::geteuid().is_root() || program("apt-get").is_none() {
        return Ok(());
    }
    println!("installing {} for the Docker tests", missing.join(" "));
    let _no_services = NoServices::begin()?;
    let apt_get = |arguments: &[&str]| {
        let mut command = Command::new("apt-get");
        command
            .env("DEBIAN_FRONTEND", "noninteractive")
            .args(["-q", "-y"])
            .args(arguments);
        finish(command)
    };
    apt_get(&["update"])?;
    let install = ["install", "--no-install-recommends"];
    apt_get(&[&install, missing.as_slice()].concat())
}

/// As long as it lives, installed packages do not start their services: a second Docker engine would
/// change the machine's firewall.
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
