//! A control group for each service, where the system lets us make one.
//!
//! The limits that services rely on are kept by their processes themselves; a group bounds what a
//! process uses beside its component's memory, and shows it to the system's tools. Without the rights,
//! without the controllers, or on a system that has none, there are no groups and nothing else changes.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use super::record::ContainerRecord;
use crate::Scope;

/// Where the system's groups are.
const ROOT: &str = "/sys/fs/cgroup";
/// Where the supervisor itself is, below a group that was given to it.
const SUBGROUP: &str = "supervisor";
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

#[derive(Debug, Clone, Copy, PartialEq)]
enum Kind {
    Unified,
    Memory,
    Cpu,
}

/// What could be a container's groups on this system.
fn groups(record: &ContainerRecord, scope: &Scope) -> Vec<Group> {
    static SYSTEM: OnceLock<Vec<(Kind, PathBuf)>> = OnceLock::new();
    let hierarchies = SYSTEM.get_or_init(|| hierarchies(Path::new(ROOT)));
    let ours = format!(
        "{}-services-{}",
        scope.branding.folder,
        scope.device.short()
    );
    let short: String = record.id.as_str().chars().take(12).collect();
    hierarchies
        .iter()
        .map(|(kind, root)| Group {
            path: root.join(&ours).join(&short),
            kind: *kind,
        })
        .collect()
}

/// Where groups of ours can be, by kind.
fn hierarchies(root: &Path) -> Vec<(Kind, PathBuf)> {
    if root.join("cgroup.controllers").exists() {
        let own = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
        let own = own.lines().find_map(|line| line.strip_prefix("0::/"));
        let delegated = own.and_then(|own| delegated(&root.join(own)));
        return vec![(Kind::Unified, delegated.unwrap_or_else(|| root.to_owned()))];
    }
    let kinds = [
        (Kind::Memory, root.join("memory")),
        (Kind::Cpu, root.join("cpu")),
    ];
    kinds
        .into_iter()
        .filter(|(_, root)| root.is_dir())
        .collect()
}

/// The group that a service manager gave us to divide (systemd's `Delegate=yes`). It may then hold no
/// process itself, so that ours moves into a group below it.
fn delegated(own: &Path) -> Option<PathBuf> {
    let is_delegated = |group: &Path| {
        let mut value = [0; 1];
        ["trusted.delegate", "user.delegate"]
            .iter()
            .any(|name| rustix::fs::getxattr(group, *name, &mut value).is_ok() && value == *b"1")
    };
    if own.ends_with(SUBGROUP) {
        let parent = own.parent()?;
        return is_delegated(parent).then(|| parent.to_owned());
    }
    if !is_delegated(own) {
        return None;
    }
    let subgroup = own.join(SUBGROUP);
    fs::create_dir_all(&subgroup).ok()?;
    let pid = std::process::id().to_string();
    fs::write(subgroup.join("cgroup.procs"), pid).ok()?;
    Some(own.to_owned())
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
        if group.kind == Kind::Unified {
            // The controllers have to be handed down; where they are not, writing limits fails below.
            let above: Vec<&Path> = group.path.ancestors().skip(1).take(2).collect();
            for parent in above.into_iter().rev() {
                let _ = fs::write(parent.join("cgroup.subtree_control"), "+memory +cpu");
            }
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

#[cfg(test)]
mod tests {
    use super::*;

    /// A folder in the place of the system's: files are made where a control group has them.
    fn put(kind: Kind, limits: &Limits) -> (io::Result<()>, impl Fn(&str) -> Option<String>) {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("ours/one");
        let done = limits.put_on(&Group {
            path: path.clone(),
            kind,
        });
        let read = move |file: &str| {
            let _root = &root;
            fs::read_to_string(path.join(file)).ok()
        };
        (done, read)
    }

    #[test]
    fn limits_are_written_as_each_hierarchy_takes_them() {
        let limits = Limits {
            memory: Some(100 << 20),
            quota: Some(25_000),
        };
        for (kind, file, value) in [
            (Kind::Unified, "memory.max", "104857600"),
            (Kind::Unified, "cpu.max", "25000 100000"),
            (Kind::Unified, "../cgroup.subtree_control", "+memory +cpu"),
            (
                Kind::Unified,
                "../../cgroup.subtree_control",
                "+memory +cpu",
            ),
            (Kind::Memory, "memory.limit_in_bytes", "104857600"),
            (Kind::Cpu, "cpu.cfs_quota_us", "25000"),
            (Kind::Cpu, "cpu.cfs_period_us", "100000"),
        ] {
            let (done, read) = put(kind, &limits);
            done.unwrap();
            assert_eq!(read(file).as_deref(), Some(value), "{kind:?} {file}");
        }
    }

    #[test]
    fn no_group_is_made_for_a_limit_that_is_not_set() {
        let limits = Limits {
            memory: Some(1),
            quota: None,
        };
        let (done, _) = put(Kind::Cpu, &limits);
        assert!(done.is_err());
    }

    #[test]
    fn hierarchies_are_found_by_their_folders() {
        let root = tempfile::tempdir().unwrap();
        assert_eq!(hierarchies(root.path()), []);
        let memory = root.path().join("memory");
        fs::create_dir(&memory).unwrap();
        assert_eq!(hierarchies(root.path()), [(Kind::Memory, memory)]);
        fs::write(root.path().join("cgroup.controllers"), "").unwrap();
        let unified = (Kind::Unified, root.path().to_owned());
        assert_eq!(hierarchies(root.path()), [unified]);
    }
}
