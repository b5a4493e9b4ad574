//! The kernel of the virtual machine that provides tests with mocks of hardware (`tests/src/virtual_machine.rs`).

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context as _, Result, bail};

use crate::cargo;
use crate::packages::{RequiredPackage, require};

/// The variable that the tests read: the folder with `vmlinuz` and modules.
pub(crate) const KERNEL: &str = "SUPERVISOR_TEST_KERNEL";

/// The tools that create it, and that run it.
pub(crate) const TOOLS: &[RequiredPackage] = &[
    ("qemu-system-x86_64", "qemu-system-x86"),
    ("/bin/busybox", "busybox-static"),
    ("make", "make"),
    ("gcc", "gcc"),
    ("xz", "xz-utils"),
];
const SCRIPT: &str = include_str!("test_kernel.sh");

/// Returns the folder that a script has filled, now or before: it downloads 220 MB, of which 10 MB are kept.
///
/// # Errors
/// What is missing, or what failed: the machine must run Debian on x86-64.
pub(crate) fn make() -> Result<PathBuf> {
    if !cfg!(target_arch = "x86_64") {
        bail!("only x86-64 is supported");
    }
    require(TOOLS, "the tests of hardware")?;
    let target = cargo::repository().join("target");
    let result = target.join("test-kernel");
    // A changed script creates another kernel.
    let stamp = target.join("test-kernel.sh");
    if result.join("gpio-sim.ko").exists()
        && fs::read_to_string(&stamp).is_ok_and(|made| made == SCRIPT)
    {
        return Ok(result);
    }
    println!("building a kernel for the tests of hardware");
    let work = tempfile::tempdir_in(&target).context("failed to create a temporary folder")?;
    let output = Command::new("sh")
        .args(["-c", SCRIPT, "sh"])
        .arg(work.path())
        .arg(&result)
        .output()
        .context("failed to start sh")?;
    if !output.status.success() {
        let error = String::from_utf8_lossy(&output.stderr);
        let last = error.lines().last().unwrap_or("it printed nothing");
        bail!("making a kernel failed: {last}");
    }
    fs::write(stamp, SCRIPT)?;
    Ok(result)
}
