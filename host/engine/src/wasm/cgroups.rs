//! The control groups of a service.
//!
//! Services' processes themselves enforce the limits that services rely on; a group bounds what a
//! process uses in addition to its component's memory, and shows its usage to the system's tools.

use std::io;
use std::os::fd::OwnedFd;
use std::path::PathBuf;

use confinement::{ControlGroups, GroupLimits};

use super::record::ContainerRecord;
use crate::Ownership;

/// The memory that a process may use in addition to that of its component, in bytes.
const OVERHEAD: u64 = 64 << 20;
/// The highest number of processes and threads of a service: its process has a dozen.
const PIDS: u64 = 64;

/// Creates the groups of a container, even if its compose file sets no limits.
pub(super) fn make(record: &ContainerRecord, ownership: &Ownership) -> ControlGroups {
    let limits = GroupLimits {
        memory: record.memory_limit().saturating_add(OVERHEAD),
        processes: PIDS,
        // The service's process enforces it as well.
        nano_cpus: record.cpu_limit(),
    };
    ControlGroups::make(&name(record, ownership), &limits)
}

/// Kills all processes in the groups of a container, and returns handles to them; `None` if it has no groups.
pub(super) fn kill(
    record: &ContainerRecord,
    ownership: &Ownership,
) -> io::Result<Option<Vec<OwnedFd>>> {
    confinement::kill_groups(&name(record, ownership))
}

/// Removes the groups of a container, whose process is gone.
pub(super) fn remove(record: &ContainerRecord, ownership: &Ownership) {
    // A group that cannot be removed contains other processes, and bounds nothing of ours.
    let _ = confinement::remove_groups(&name(record, ownership));
}

fn name(record: &ContainerRecord, ownership: &Ownership) -> PathBuf {
    let device = ownership.device.short();
    let ours = format!("{}-services-{device}", ownership.branding.folder);
    let short: String = record.id.as_str().chars().take(12).collect();
    PathBuf::from(ours).join(short)
}
