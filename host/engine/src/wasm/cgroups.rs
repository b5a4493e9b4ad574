//! A control group for each service, where the system lets us make one.
//!
//! The limits that services rely on are kept by their processes themselves; a group bounds what a
//! process uses beside its component's memory, and shows it to the system's tools. Without the rights,
//! without the controllers, or on a system that has none, there are no groups, and what is not bounded is said.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use confinement::{MissingWall, Wall};
use wasm_runner::record::ControlGroup;

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

/// The most processes and threads of a service: its process has a dozen.
const PIDS: u64 = 64;

/// The groups of a container, as far as they could be made.
pub(super) struct ContainerGroups {
    pub(super) made: Vec<ControlGroup>,
    /// The bounds that could not be set, and why.
    pub(super) missing: Vec<MissingWall>,
}

/// Makes the groups of a container: always, whatever its compose file says of limits.
pub(super) fn make(record: &ContainerRecord, scope: &Scope) -> ContainerGroups {
    let quota = super::launch::nano_cpus(record);
    let limits = Limits {
        memory: super::launch::memory_limit(record).saturating_add(OVERHEAD),
        pids: PIDS,
        quota: (quota > 0).then(|| quota.saturating_mul(PERIOD) / 1_000_000_000),
    };
    make_in(&groups(record, scope), &limits)
}

fn make_in(groups: &[Group], limits: &Limits) -> ContainerGroups {
    let mut made: Vec<ControlGroup> = Vec::new();
    let mut reasons = BTreeMap::new();
    for group in groups {
        match limits.put_on(group) {
            Ok(outcome) => {
                reasons.extend(outcome.failures);
                made.push(ControlGroup {
                    path: group.path.clone(),
                    walls: outcome.walls,
                });
            }
            Err(failures) => reasons.extend(failures),
        }
    }
    let missing = [Wall::Memory, Wall::Processes]
        .into_iter()
        .filter(|wall| !made.iter().any(|group| group.walls.contains(wall)))
        .map(|wall| MissingWall {
            wall,
            reason: reasons
                .remove(&wall)
                .unwrap_or_else(|| format!("there is no control group for it below `{ROOT}`")),
        })
        .collect();
    ContainerGroups { made, missing }
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
    Pids,
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
        (Kind::Pids, root.join("pids")),
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
    /// Bytes.
    memory: u64,
    pids: u64,
    /// Microseconds a period.
    quota: Option<u64>,
}

/// What came of one group.
struct GroupOutcome {
    walls: Vec<Wall>,
    failures: Vec<(Wall, String)>,
}

impl Limits {
    /// # Errors
    /// Where no limit could be set: the group is not there then.
    fn put_on(&self, group: &Group) -> Result<GroupOutcome, Vec<(Wall, String)>> {
        let of_kind = match group.kind {
            Kind::Unified => vec![Wall::Memory, Wall::Processes],
            Kind::Memory => vec![Wall::Memory],
            Kind::Pids => vec![Wall::Processes],
            Kind::Cpu => Vec::new(),
        };
        if group.kind == Kind::Cpu && self.quota.is_none() {
            return Err(Vec::new());
        }
        let path = group.path.display();
        let failed = |wall, error: &io::Error| (wall, format!("`{path}` cannot bound it: {error}"));
        if let Err(error) = fs::create_dir_all(&group.path) {
            return Err(of_kind
                .into_iter()
                .map(|wall| failed(wall, &error))
                .collect());
        }
        if group.kind == Kind::Unified {
            hand_down(&group.path);
        }
        let put = |file: &str, value: u64| fs::write(group.path.join(file), value.to_string());
        let quota = self.set_quota(group);
        let mut outcome = GroupOutcome {
            walls: Vec::new(),
            failures: Vec::new(),
        };
        for wall in of_kind {
            let set = match (wall, group.kind) {
                (Wall::Memory, Kind::Memory) => put("memory.limit_in_bytes", self.memory),
                (Wall::Memory, _) => put("memory.max", self.memory),
                _ => put("pids.max", self.pids),
            };
            match set {
                Ok(()) => outcome.walls.push(wall),
                Err(error) => outcome.failures.push(failed(wall, &error)),
            }
        }
        if outcome.walls.is_empty() && quota.is_err() {
            let _ = fs::remove_dir(&group.path);
            return Err(outcome.failures);
        }
        Ok(outcome)
    }

    /// The share of a processor, which the service's process keeps by itself as well. An error where there is none.
    fn set_quota(&self, group: &Group) -> io::Result<()> {
        let quota = self.quota.ok_or(io::ErrorKind::Unsupported)?;
        let put = |file: &str, value: String| fs::write(group.path.join(file), value);
        match group.kind {
            Kind::Unified => put("cpu.max", format!("{quota} {PERIOD}")),
            Kind::Cpu => put("cpu.cfs_period_us", PERIOD.to_string())
                .and_then(|()| put("cpu.cfs_quota_us", quota.to_string())),
            Kind::Memory | Kind::Pids => Err(io::ErrorKind::Unsupported.into()),
        }
    }
}

/// Controllers have to be handed down to a group by those above it; where they are not, writing limits fails.
fn hand_down(group: &Path) {
    let above: Vec<&Path> = group.ancestors().skip(1).take(2).collect();
    for parent in above.into_iter().rev() {
        let file = parent.join("cgroup.subtree_control");
        if fs::write(&file, "+cpu +memory +pids").is_err() {
            // One that is missing keeps the others from being handed down.
            for controller in ["+cpu", "+memory", "+pids"] {
                let _ = fs::write(&file, controller);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: Limits = Limits {
        memory: 100 << 20,
        pids: 64,
        quota: Some(25_000),
    };

    /// A folder in the place of the system's: files are made where a control group has them.
    fn put(kind: Kind, limits: &Limits) -> (ContainerGroups, impl Fn(&str) -> Option<String>) {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("ours/one");
        let group = Group {
            path: path.clone(),
            kind,
        };
        let groups = make_in(&[group], limits);
        let read = move |file: &str| {
            let _root = &root;
            fs::read_to_string(path.join(file)).ok()
        };
        (groups, read)
    }

    #[test]
    fn m9_limits_are_written_as_each_hierarchy_takes_them() {
        for (kind, file, value) in [
            (Kind::Unified, "memory.max", "104857600"),
            (Kind::Unified, "pids.max", "64"),
            (Kind::Unified, "cpu.max", "25000 100000"),
            (
                Kind::Unified,
                "../cgroup.subtree_control",
                "+cpu +memory +pids",
            ),
            (
                Kind::Unified,
                "../../cgroup.subtree_control",
                "+cpu +memory +pids",
            ),
            (Kind::Memory, "memory.limit_in_bytes", "104857600"),
            (Kind::Pids, "pids.max", "64"),
            (Kind::Cpu, "cpu.cfs_quota_us", "25000"),
            (Kind::Cpu, "cpu.cfs_period_us", "100000"),
        ] {
            let (groups, read) = put(kind, &LIMITS);
            assert_eq!(groups.made.len(), 1, "{kind:?}");
            assert_eq!(read(file).as_deref(), Some(value), "{kind:?} {file}");
        }
    }

    #[test]
    fn m9_a_bound_that_the_system_does_not_take_is_named() {
        let (groups, _) = put(Kind::Unified, &LIMITS);
        assert_eq!(groups.missing, []);
        let (groups, _) = put(Kind::Memory, &LIMITS);
        let missing: Vec<Wall> = groups.missing.iter().map(|missing| missing.wall).collect();
        assert_eq!(missing, [Wall::Processes]);
        let nowhere = Group {
            path: "/proc/no/group".into(),
            kind: Kind::Unified,
        };
        let groups = make_in(&[nowhere], &LIMITS);
        assert!(groups.made.is_empty());
        let said: Vec<String> = groups.missing.iter().map(ToString::to_string).collect();
        assert!(
            said.len() == 2 && said.iter().all(|said| said.contains("`/proc/no/group`")),
            "{said:?}"
        );
    }

    #[test]
    fn no_group_is_made_for_a_share_that_is_not_set() {
        let limits = Limits {
            quota: None,
            ..LIMITS
        };
        let (groups, _) = put(Kind::Cpu, &limits);
        assert!(groups.made.is_empty());
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
