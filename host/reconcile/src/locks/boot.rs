//! Which boot this is, and how long it has lasted: what tells a reboot from a restart, and the one clock
//! that nobody sets.

use std::fs;
use std::path::Path;

use rustix::time::{ClockId, clock_gettime};

/// Below the host's root, and below that of a container, where the kernel gives the same.
const BOOT_ID: &str = "proc/sys/kernel/random/boot_id";

/// The longest boot id that is read, in bytes.
const MAX_BOOT_ID: usize = 64;

/// The id of this boot; empty where the kernel does not give it.
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

/// Milliseconds since the boot, sleep included.
pub(super) fn uptime_ms() -> i64 {
    let now = clock_gettime(ClockId::Boottime);
    now.tv_sec
        .saturating_mul(1000)
        .saturating_add(now.tv_nsec / 1_000_000)
}
