//! Control groups, which limit the resources of a whole process.
//!
//! Unlike the other walls they are set up from outside: the parent creates a process's groups before it starts the
//! process, and removes them afterwards. Without the rights or the controllers, or on a system without control groups,
//! there are no groups, and the report names what is not limited.

mod hierarchies;
mod processes;

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::{MissingWall, Report, Wall};
use hierarchies::{HierarchyKind, ROOT, system};

pub use processes::kill_groups;

/// The period of the CPU limit, in microseconds.
const PERIOD: u64 = 100_000;
/// The share of the processor that all groups of one kind have while others also need it: next to the supervisor, and
/// on systems without a delegated group next to everything else. The files contain 100 (version 2) and 1024 unless
/// somebody changes them. The processes in these groups have the niceness 5, which the scheduler counts as 335 of 1024,
/// but only compares within a group.
const CPU_WEIGHT: u64 = 33;
const CPU_SHARES: u64 = 335;

/// A control group.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ControlGroup {
    /// Its folder.
    pub path: PathBuf,
    /// The walls that it provides.
    pub walls: Vec<Wall>,
}

/// The limits for all processes of a group together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GroupLimits {
    /// Bytes of memory, including the kernel's memory for them.
    pub memory: u64,
    /// Processes and threads.
    pub processes: u64,
    /// Billionths of a CPU; 0 means no limit.
    pub nano_cpus: u64,
}

/// The groups of one process, as far as they could be created: one, or one of each kind on older systems.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ControlGroups {
    /// The existing groups.
    pub made: Vec<ControlGroup>,
    /// The bounds that could not be set, and why.
    pub missing: Vec<MissingWall>,
}

impl ControlGroups {
    /// Creates the groups called `name`, a path below the place where this process may create groups. Existing groups
    /// get these limits. All groups below the first part of `name` together get less of the processor than this process
    /// while both need it.
    #[must_use]
    pub fn make(name: &Path, limits: &GroupLimits) -> ControlGroups {
        make_in(&places(name), limits)
    }

    /// Puts a process into the groups, and returns the walls that they provide.
    #[must_use]
    pub fn enter(&self, process: u32) -> Report {
        let mut report = Report {
            missing: self.missing.clone(),
            ..Report::default()
        };
        for group in &self.made {
            let entered = group.enter(process);
            for wall in &group.walls {
                report.note(*wall, entered.clone());
            }
        }
        report
    }

    /// Sets the bytes of memory that the groups may use from now on.
    ///
    /// # Errors
    /// Why the previous limit stays; also if more is in use, since the kernel would kill the processes then.
    pub fn set_memory(&self, bytes: u64) -> Result<(), String> {
        let bounding = |group: &&ControlGroup| group.walls.contains(&Wall::Memory);
        for ControlGroup { path, .. } in self.made.iter().filter(bounding) {
            let unified = path.join("memory.max");
            let (limit, usage) = if unified.exists() {
                (unified, "memory.current")
            } else {
                (path.join("memory.limit_in_bytes"), "memory.usage_in_bytes")
            };
            let failed = |reason: &dyn std::fmt::Display| {
                let limit = limit.display();
                format!("`{limit}` does not become {bytes}: {reason}")
            };
            let used = fs::read_to_string(path.join(usage)).unwrap_or_default();
            let used: u64 = used.trim().parse().unwrap_or(0);
            if used > bytes {
                return Err(failed(&format!("{used} bytes are in use")));
            }
            fs::write(&limit, bytes.to_string()).map_err(|error| failed(&error))?;
        }
        Ok(())
    }

    /// Returns how many processes of the groups the kernel has killed because they exceeded their memory limit.
    #[must_use]
    pub fn ended_for_memory(&self) -> u64 {
        let of = |group: &ControlGroup| {
            ["memory.events", "memory.oom_control"]
                .into_iter()
                .filter_map(|file| fs::read_to_string(group.path.join(file)).ok())
                .find_map(|text| {
                    let line = text
                        .lines()
                        .find_map(|line| line.strip_prefix("oom_kill "))?;
                    line.trim().parse::<u64>().ok()
                })
        };
        self.made.iter().filter_map(of).sum()
    }
}

impl ControlGroup {
    /// Puts a process into the group.
    ///
    /// # Errors
    /// The reason why it is not in the group.
    pub fn enter(&self, process: u32) -> Result<(), String> {
        fs::write(self.path.join("cgroup.procs"), process.to_string())
            .map_err(|error| format!("failed to enter `{}`: {error}", self.path.display()))
    }
}

/// Removes the groups called `name`, whose processes are gone, and the parent folder together with its last group.
///
/// # Errors
/// If a group still has processes, and so stays.
pub fn remove_groups(name: &Path) -> io::Result<()> {
    let mut outcome = Ok(());
    for GroupLocation { path, .. } in places(name) {
        match fs::remove_dir(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => outcome = Err(error),
            _ => {
                if let Some(parent) = path.parent() {
                    let _ = fs::remove_dir(parent);
                }
            }
        }
    }
    outcome
}

/// Returns the names of the groups below `name`.
#[must_use]
pub fn groups_below(name: &Path) -> Vec<String> {
    let mut names = Vec::new();
    for GroupLocation { path, .. } in places(name) {
        let entries = fs::read_dir(path).into_iter().flatten().flatten();
        let folders = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
        names.extend(folders.filter_map(|entry| entry.file_name().into_string().ok()));
    }
    names.sort();
    names.dedup();
    names
}

/// A place where a group can be.
struct GroupLocation {
    path: PathBuf,
    /// The group of the same hierarchy that contains it and its siblings.
    outermost: PathBuf,
    kind: HierarchyKind,
}

fn places(name: &Path) -> Vec<GroupLocation> {
    let first = name.components().next();
    let first = first.map_or(name, |part| Path::new(part.as_os_str()));
    let places = system().iter().map(|(kind, root)| GroupLocation {
        path: root.join(name),
        outermost: root.join(first),
        kind: *kind,
    });
    places.collect()
}

fn make_in(places: &[GroupLocation], limits: &GroupLimits) -> ControlGroups {
    let mut made: Vec<ControlGroup> = Vec::new();
    let mut reasons = BTreeMap::new();
    for place in places {
        let (group, failures) = limits.put_on(place);
        made.extend(group);
        reasons.extend(failures);
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
    ControlGroups { made, missing }
}

impl GroupLimits {
    /// Creates a group with these limits, as far as they can be set; no group if none can. Also returns why the others
    /// cannot be set.
    fn put_on(&self, place: &GroupLocation) -> (Option<ControlGroup>, Vec<(Wall, String)>) {
        let limits = match place.kind {
            HierarchyKind::Unified => vec![
                (Wall::Memory, "memory.max", self.memory),
                (Wall::Processes, "pids.max", self.processes),
            ],
            HierarchyKind::Memory => vec![(Wall::Memory, "memory.limit_in_bytes", self.memory)],
            HierarchyKind::Pids => vec![(Wall::Processes, "pids.max", self.processes)],
            HierarchyKind::Cpu => Vec::new(),
        };
        if place.kind == HierarchyKind::Cpu && self.nano_cpus == 0 {
            return (None, Vec::new());
        }
        let path = place.path.display();
        let failed = |wall, error: &io::Error| (wall, format!("`{path}` cannot bound it: {error}"));
        if let Err(error) = fs::create_dir_all(&place.path) {
            let failures = limits.iter().map(|(wall, ..)| failed(*wall, &error));
            return (None, failures.collect());
        }
        if place.kind == HierarchyKind::Unified {
            hierarchies::hand_down(&place.path);
        }
        set_weight(place);
        let quota = self.set_quota(place);
        let (mut walls, mut failures) = (Vec::new(), Vec::new());
        for (wall, file, limit) in limits {
            match fs::write(place.path.join(file), limit.to_string()) {
                Ok(()) => walls.push(wall),
                Err(error) => failures.push(failed(wall, &error)),
            }
        }
        if walls.is_empty() && quota.is_err() {
            let _ = fs::remove_dir(&place.path);
            return (None, failures);
        }
        let path = place.path.clone();
        (Some(ControlGroup { path, walls }), failures)
    }

    /// Sets the share of the processor. Fails if there is no such limit.
    fn set_quota(&self, place: &GroupLocation) -> io::Result<()> {
        if self.nano_cpus == 0 {
            return Err(io::ErrorKind::Unsupported.into());
        }
        let quota = self.nano_cpus.saturating_mul(PERIOD) / 1_000_000_000;
        let put = |file: &str, value: String| fs::write(place.path.join(file), value);
        match place.kind {
            HierarchyKind::Unified => put("cpu.max", format!("{quota} {PERIOD}")),
            HierarchyKind::Cpu => put("cpu.cfs_period_us", PERIOD.to_string())
                .and_then(|()| put("cpu.cfs_quota_us", quota.to_string())),
            HierarchyKind::Memory | HierarchyKind::Pids => Err(io::ErrorKind::Unsupported.into()),
        }
    }
}

/// Gives all groups of this kind less of the processor than others have. It is no wall: without it, they only take more
/// of the time that others also need.
fn set_weight(place: &GroupLocation) {
    let (file, weight) = match place.kind {
        HierarchyKind::Unified => ("cpu.weight", CPU_WEIGHT),
        HierarchyKind::Cpu => ("cpu.shares", CPU_SHARES),
        HierarchyKind::Memory | HierarchyKind::Pids => return,
    };
    let _ = fs::write(place.outermost.join(file), weight.to_string());
}

#[cfg(test)]
mod tests;
