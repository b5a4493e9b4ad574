//! The places of the system's control groups in which this process may create some.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// The root of the system's groups.
pub(super) const ROOT: &str = "/sys/fs/cgroup";
/// The place of this process itself, below a group that was delegated to it.
const SUBGROUP: &str = "supervisor";

/// What the groups of a hierarchy limit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum HierarchyKind {
    /// Everything (version 2).
    Unified,
    Memory,
    Cpu,
    Pids,
}

/// Returns the places for our groups on this system.
pub(super) fn system() -> &'static [(HierarchyKind, PathBuf)] {
    static SYSTEM: OnceLock<Vec<(HierarchyKind, PathBuf)>> = OnceLock::new();
    SYSTEM.get_or_init(|| hierarchies(Path::new(ROOT)))
}

/// Returns the places for our groups, by kind.
fn hierarchies(root: &Path) -> Vec<(HierarchyKind, PathBuf)> {
    if root.join("cgroup.controllers").exists() {
        let own = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
        let own = own.lines().find_map(|line| line.strip_prefix("0::/"));
        let delegated = own.and_then(|own| delegated(&root.join(own)));
        return vec![(
            HierarchyKind::Unified,
            delegated.unwrap_or_else(|| root.to_owned()),
        )];
    }
    let kinds = [
        (HierarchyKind::Memory, root.join("memory")),
        (HierarchyKind::Cpu, root.join("cpu")),
        (HierarchyKind::Pids, root.join("pids")),
    ];
    kinds
        .into_iter()
        .filter(|(_, root)| root.is_dir())
        .collect()
}

/// Returns the group that a service manager delegated to us (systemd's `Delegate=yes`). It must not contain
/// processes itself then, so our process moves into a group below it.
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

/// Enables the controllers for a group in the two groups above it; without this, writing limits fails.
pub(super) fn hand_down(group: &Path) {
    let above: Vec<&Path> = group.ancestors().skip(1).take(2).collect();
    for parent in above.into_iter().rev() {
        let file = parent.join("cgroup.subtree_control");
        if fs::write(&file, "+cpu +memory +pids").is_err() {
            // Separately, since a missing one would prevent the others from being enabled.
            for controller in ["+cpu", "+memory", "+pids"] {
                let _ = fs::write(&file, controller);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hierarchies_are_found_by_their_folders() {
        let root = tempfile::tempdir().unwrap();
        assert_eq!(hierarchies(root.path()), []);
        let memory = root.path().join("memory");
        fs::create_dir(&memory).unwrap();
        assert_eq!(hierarchies(root.path()), [(HierarchyKind::Memory, memory)]);
        fs::write(root.path().join("cgroup.controllers"), "").unwrap();
        let unified = (HierarchyKind::Unified, root.path().to_owned());
        assert_eq!(hierarchies(root.path()), [unified]);
    }
}
