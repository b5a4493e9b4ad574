//! Where the system has control groups, and lets this process make some.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// Where the system's groups are.
pub(super) const ROOT: &str = "/sys/fs/cgroup";
/// Where this process itself is, below a group that was given to it.
const SUBGROUP: &str = "supervisor";

/// What the groups of a hierarchy bound.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum HierarchyKind {
    /// All of it (version 2).
    Unified,
    Memory,
    Cpu,
    Pids,
}

/// Where groups of ours can be on this system.
pub(super) fn system() -> &'static [(HierarchyKind, PathBuf)] {
    static SYSTEM: OnceLock<Vec<(HierarchyKind, PathBuf)>> = OnceLock::new();
    SYSTEM.get_or_init(|| hierarchies(Path::new(ROOT)))
}

/// Where groups of ours can be, by kind.
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

/// Controllers have to be handed down to a group by those above it; where they are not, writing limits fails.
pub(super) fn hand_down(group: &Path) {
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
