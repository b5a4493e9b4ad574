//! A control group for each service, where the system lets us make one.
//!
//! The limits that services rely on are kept by their processes themselves; a group bounds what a
//! process uses beside its component's memory, and shows it to the system's tools. Without the rights,
//! without the controllers, or on a system that has none, there are no groups and nothing else changes.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::record::ContainerRecord;
use crate::Scope;

/// Where the system's groups are.
const ROOT: &str = "/sys/fs/cgroup";
/// What a process may use beside the memory of its component, in bytes.
const OVERHEAD: u64 = 64 << 20;
/// The period of the CPU limit, in microseconds.
const PERIOD: u64 = 100_000;

/// The groups of a container, each the folder of one, as far as they could be made.
pub(super) fn make(record: &ContainerRecord, scope: &Scope) -> Vec<PathBuf> {
    let config = &record.config;
    let memory = (config.mem_limit > 0).then(|| config.mem_limit.saturating_add(OVERHEAD));
    let quota = super::launch::nano_cpus(record);
    let quota = (quota > 0).then(|| quota.saturating_mul(PERIOD) / 1_000_000_000);
    if memory.is_none() && quota.is_none() {
        return Vec::new();
    }
    let limits = Limits { memory, quota };
    groups(record, scope)
        .into_iter()
        .filter(|group| limits.put_on(group).is_ok())
        .map(|group| group.path)
        .collect()
}

/// Removes the groups of a container, whose process is gone.
pub(super) fn remove(record: &ContainerRecord, scope: &Scope) {
    for group in groups(record, scope) {
        let _ = fs::remove_dir(&group.path);
        // The folder of all of ours goes with the last of them.
        if let Some(parent) = group.path.parent() {
            let _ = fs::remove_dir(parent);
        }
    }
}

struct Group {
    path: PathBuf,
    kind: Kind,
}

#[derive(PartialEq)]
enum Kind {
    Unified,
    Memory,
    Cpu,
}

/// What could be a container's groups on this system.
fn groups(record: &ContainerRecord, scope: &Scope) -> Vec<Group> {
    let short: String = record.id.as_str().chars().take(12).collect();
    let below = |root: &str| {
        let ours = format!(
            "{}-services-{}",
            scope.branding.folder,
            scope.device.short()
        );
        Path::new(root).join(ours).join(&short)
    };
    let kinds = if Path::new(ROOT).join("cgroup.controllers").exists() {
        vec![(Kind::Unified, ROOT.to_owned())]
    } else {
        vec![
            (Kind::Memory, format!("{ROOT}/memory")),
            (Kind::Cpu, format!("{ROOT}/cpu")),
        ]
    };
    let present = kinds
        .into_iter()
        .filter(|(_, root)| Path::new(root).is_dir());
    present
        .map(|(kind, root)| Group {
            path: below(&root),
            kind,
        })
        .collect()
}

struct Limits {
    memory: Option<u64>,
    /// Microseconds a period.
    quota: Option<u64>,
}

impl Limits {
    fn put_on(&self, group: &Group) -> io::Result<()> {
        let needed = match group.kind {
            Kind::Unified => true,
            Kind::Memory => self.memory.is_some(),
            Kind::Cpu => self.quota.is_some(),
        };
        if !needed {
            return Err(io::ErrorKind::Unsupported.into());
        }
        fs::create_dir_all(&group.path)?;
        if group.kind == Kind::Unified
            && let Some(parent) = group.path.parent()
        {
            // The controllers have to be handed down; where they are not, writing limits fails below.
            let _ = fs::write(parent.join("cgroup.subtree_control"), "+memory +cpu");
        }
        let put = |file: &str, value: String| fs::write(group.path.join(file), value);
        let done = match group.kind {
            Kind::Unified => {
                let memory = self
                    .memory
                    .map(|memory| put("memory.max", memory.to_string()));
                let quota = self
                    .quota
                    .map(|quota| put("cpu.max", format!("{quota} {PERIOD}")));
                memory.unwrap_or(Ok(())).and(quota.unwrap_or(Ok(())))
            }
            Kind::Memory => put(
                "memory.limit_in_bytes",
                self.memory.unwrap_or(u64::MAX >> 1).to_string(),
            ),
            Kind::Cpu => put("cpu.cfs_period_us", PERIOD.to_string())
                .and_then(|()| put("cpu.cfs_quota_us", self.quota.unwrap_or(PERIOD).to_string())),
        };
        done.inspect_err(|_| {
            let _ = fs::remove_dir(&group.path);
        })
    }
}
