//! The programs that a private engine needs, and their packages.

use anyhow::{Result, bail};

use crate::busybox;
use crate::packages::{RequiredPackage, install_if_debian_root, program};

/// Program and Debian package.
pub(crate) const NEEDED: &[RequiredPackage] = &[
    ("dockerd", "docker.io"),
    ("containerd", "containerd"),
    ("iptables", "iptables"),
    ("ip", "iproute2"),
    ("umount", "mount"),
    ("busybox", "busybox-static"),
    ("docker-registry", "docker-registry"),
];

/// Fails with a list of what this machine lacks.
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
        .filter(|(name, _)| match *name {
            // The busybox of another package needs libraries, which containers of the tests do not
            // have.
            "busybox" => busybox::find_on_this_machine().is_none(),
            name => program(name).is_none(),
        })
        .map(|(_, package)| *package)
        .collect()
}

/// Installs what is missing, if possible.
pub(crate) fn install_packages_if_debian_root() -> Result<()> {
    install_if_debian_root(&missing(), "the Docker tests")
}
