//! The control groups of a service.
//!
//! The limits that services rely on are kept by their processes themselves; a group bounds what a
//! process uses beside its component's memory, and shows it to the system's tools.

use std::path::PathBuf;

use confinement::{ControlGroups, GroupLimits};

use super::record::ContainerRecord;
use crate::Scope;

/// What a process may use beside the memory of its component, in bytes.
const OVERHEAD: u64 = 64 << 20;
/// The most processes and threads of a service: its process has a dozen.
const PIDS: u64 = 64;

/// Makes the groups of a container: always, whatever its compose file says of limits.
pub(super) fn make(record: &ContainerRecord, scope: &Scope) -> ControlGroups {
    let limits = GroupLimits {
        memory: super::launch::memory_limit(record).saturating_add(OVERHEAD),
        processes: PIDS,
        // Kept by the service's process itself as well.
        nano_cpus: super::launch::nano_cpus(record),
    };
    ControlGroups::make(&name(record, scope), &limits)
}

/// Removes the groups of a container, whose process is gone.
pub(super) fn remove(record: &ContainerRecord, scope: &Scope) {
    // What cannot be removed has somebody else in it, and bounds nothing of ours.
    let _ = confinement::remove_groups(&name(record, scope));
}

fn name(record: &ContainerRecord, scope: &Scope) -> PathBuf {
    let device = scope.device.short();
    let ours = format!("{}-services-{device}", scope.branding.folder);
    let short: String = record.id.as_str().chars().take(12).collect();
    PathBuf::from(ours).join(short)
}
