//! The programs that stand in for a device's host in the tests: a system bus with systemd's services on
//! it, journals, a redirector of connections, a clock of its own.

use std::env;
use std::path::Path;

use anyhow::{Result, bail};

use crate::packages::{install_if_debian_root, program};

/// A Debian package, and the file of it that is looked for: a program's name, or a path.
struct DebianPackage {
    package: &'static str,
    file: &'static str,
}

const NEEDED: [DebianPackage; 9] = [
    DebianPackage {
        package: "dbus-daemon",
        file: "dbus-daemon",
    },
    DebianPackage {
        package: "python3-dbusmock",
        file: "/usr/lib/python3/dist-packages/dbusmock",
    },
    DebianPackage {
        package: "redsocks",
        file: "redsocks",
    },
    DebianPackage {
        package: "iptables",
        file: "iptables",
    },
    DebianPackage {
        package: "nftables",
        file: "nft",
    },
    DebianPackage {
        package: "iproute2",
        file: "ip",
    },
    DebianPackage {
        package: "faketime",
        file: "faketime",
    },
    DebianPackage {
        package: "systemd",
        file: "journalctl",
    },
    DebianPackage {
        package: "systemd-journal-remote",
        file: "/lib/systemd/systemd-journal-remote",
    },
];

/// What this machine has of them, after what could be installed was.
pub(crate) struct HostStandIns {
    missing: Vec<&'static str>,
    /// Why they were not installed, where that was tried.
    failed: Option<anyhow::Error>,
}

impl HostStandIns {
    pub(crate) fn find() -> Self {
        let failed = install_if_debian_root(&missing(), "the tests of the host").err();
        HostStandIns {
            missing: missing(),
            failed,
        }
    }

    /// Says what was skipped; in continuous integration nothing may be.
    pub(crate) fn account_for_skips(&self) -> Result<()> {
        let mut reasons = Vec::new();
        if !self.missing.is_empty() {
            reasons.push(format!("not installed: {}", self.missing.join(", ")));
            reasons.extend(self.failed.as_ref().map(|error| format!("{error:#}")));
        }
        if !rustix::process::geteuid().is_root() {
            reasons.push("a private network for a test needs root".to_owned());
        }
        if reasons.is_empty() {
            return Ok(());
        }
        let reason = reasons.join("; ");
        if env::var_os("CI").is_some() {
            bail!("the suites on the host's stand-ins were skipped: {reason}");
        }
        println!("\nskipped: the suites on the host's stand-ins, because {reason}");
        Ok(())
    }
}

fn missing() -> Vec<&'static str> {
    NEEDED
        .iter()
        .filter(|needed| !Path::new(needed.file).exists() && program(needed.file).is_none())
        .map(|needed| needed.package)
        .collect()
}
