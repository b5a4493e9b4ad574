//! The identity and duration of the current boot: these distinguish a reboot from a restart, and give a clock that
//! nobody sets.

use std::fs;
use std::path::Path;

use rustix::time::{ClockId, clock_gettime};

/// Below the host's root, or below the container's own, where the kernel shows the same value.
const BOOT_ID: &str = "proc/sys/kernel/random/boot_id";

/// The maximum length of a boot id, in bytes.
const MAX_BOOT_ID: usize = 64;

/// Returns the id of this boot; empty if the kernel does not provide it.
pub(super) fn id(host_root: &Path) -> String {
    let read = |root: &Path| fs::read_to_string(root.join(BOOT_ID)).ok();
    let id = read(host_root).or_else(|| read(Path::new("/")));
    let id = id.map(|id| id.trim().to_owned()).unwrap_or_default();
    if id.len() <= MAX_BOOT_ID {
        id
    } else {
        String::new()
    }
}

/// Returns the milliseconds since the boot, including sleep.
pub(super) fn uptime_ms() -> i64 {
    let now = clock_gettime(ClockId::Boottime);
    now.tv_sec
        .saturating_mul(1000)
        .saturating_add(now.tv_nsec / 1_000_000)
}
