//! The groups, in ordinary folders instead of the system's.

use super::*;

const LIMITS: GroupLimits = GroupLimits {
    memory: 100 << 20,
    processes: 64,
    nano_cpus: 250_000_000,
};

/// Uses a folder instead of the system's: in it, the files of a control group are created as ordinary files.
fn put(
    kind: HierarchyKind,
    limits: &GroupLimits,
) -> (ControlGroups, impl Fn(&str) -> Option<String>) {
    let root = tempfile::tempdir().unwrap();
    let path = root.path().join("ours/one");
    let place = GroupLocation {
        path: path.clone(),
        outermost: root.path().join("ours"),
        kind,
    };
    let groups = make_in(&[place], limits);
    let read = move |file: &str| {
        let _root = &root;
        fs::read_to_string(path.join(file)).ok()
    };
    (groups, read)
}

#[test]
fn limits_are_written_as_each_hierarchy_takes_them() {
    for (kind, file, value) in [
        (HierarchyKind::Unified, "memory.max", "104857600"),
        (HierarchyKind::Unified, "pids.max", "64"),
        (HierarchyKind::Unified, "cpu.max", "25000 100000"),
        (
            HierarchyKind::Unified,
            "../cgroup.subtree_control",
            "+cpu +memory +pids",
        ),
        (
            HierarchyKind::Unified,
            "../../cgroup.subtree_control",
            "+cpu +memory +pids",
        ),
        (HierarchyKind::Memory, "memory.limit_in_bytes", "104857600"),
        (HierarchyKind::Pids, "pids.max", "64"),
        (HierarchyKind::Cpu, "cpu.cfs_quota_us", "25000"),
        (HierarchyKind::Cpu, "cpu.cfs_period_us", "100000"),
        // Where they compete with the supervisor: within a group of its own, a niceness has no effect on others.
        (HierarchyKind::Unified, "../cpu.weight", "33"),
        (HierarchyKind::Cpu, "../cpu.shares", "335"),
    ] {
        let (groups, read) = put(kind, &LIMITS);
        assert_eq!(groups.made.len(), 1, "{kind:?}");
        assert_eq!(read(file).as_deref(), Some(value), "{kind:?} {file}");
    }
}

#[test]
fn a_bound_that_the_system_does_not_take_is_named() {
    let (groups, _) = put(HierarchyKind::Unified, &LIMITS);
    assert_eq!(groups.missing, []);
    let (groups, _) = put(HierarchyKind::Memory, &LIMITS);
    let missing: Vec<Wall> = groups.missing.iter().map(|missing| missing.wall).collect();
    assert_eq!(missing, [Wall::Processes]);
    let nowhere = GroupLocation {
        path: "/proc/no/group".into(),
        outermost: "/proc/no".into(),
        kind: HierarchyKind::Unified,
    };
    let groups = make_in(&[nowhere], &LIMITS);
    assert!(groups.made.is_empty());
    let texts: Vec<String> = groups.missing.iter().map(ToString::to_string).collect();
    assert!(
        texts.len() == 2 && texts.iter().all(|text| text.contains("`/proc/no/group`")),
        "{texts:?}"
    );
}

#[test]
fn a_process_that_does_not_get_into_its_group_lacks_that_wall() {
    let groups = ControlGroups {
        made: vec![ControlGroup {
            path: "/proc/no/group".into(),
            walls: vec![Wall::Memory],
        }],
        missing: vec![MissingWall {
            wall: Wall::Processes,
            reason: "there is none".to_owned(),
        }],
    };
    let report = groups.enter(1);
    assert_eq!(report.in_force, []);
    let words = report.missing_in_words();
    assert!(
        words.starts_with("processes (there is none), memory (failed to enter `/proc/no/group`"),
        "{words}"
    );
}

#[test]
fn processes_that_ended_for_memory_are_counted_in_both_hierarchies() {
    for (kind, file, text) in [
        (
            HierarchyKind::Unified,
            "memory.events",
            "oom 3\noom_kill 2\n",
        ),
        (
            HierarchyKind::Memory,
            "memory.oom_control",
            "oom_kill_disable 0\nunder_oom 0\noom_kill 2\n",
        ),
    ] {
        let (groups, read) = put(kind, &LIMITS);
        assert_eq!(groups.ended_for_memory(), 0);
        fs::write(groups.made[0].path.join(file), text).unwrap();
        assert_eq!(groups.ended_for_memory(), 2, "{kind:?}");
        drop(read);
    }
}

#[test]
fn a_limit_of_memory_changes_later_unless_that_would_kill() {
    for (kind, file, usage) in [
        (HierarchyKind::Unified, "memory.max", "memory.current"),
        (
            HierarchyKind::Memory,
            "memory.limit_in_bytes",
            "memory.usage_in_bytes",
        ),
    ] {
        let (groups, read) = put(kind, &LIMITS);
        groups.set_memory(200 << 20).unwrap();
        assert_eq!(read(file).as_deref(), Some("209715200"), "{kind:?}");
        fs::write(groups.made[0].path.join(usage), "1000\n").unwrap();
        groups.set_memory(1000).unwrap();
        assert_eq!(read(file).as_deref(), Some("1000"), "{kind:?}");
        let refused = groups.set_memory(999).unwrap_err();
        assert!(refused.contains("1000 bytes are in use"), "{refused}");
        assert!(refused.contains(file), "{refused}");
        assert_eq!(read(file).as_deref(), Some("1000"), "{kind:?}");
    }
    let (groups, read) = put(HierarchyKind::Pids, &LIMITS);
    groups.set_memory(1000).unwrap();
    assert_eq!(read("memory.max"), None);
}

#[test]
fn no_group_is_made_for_a_share_that_is_not_set() {
    let limits = GroupLimits {
        nano_cpus: 0,
        ..LIMITS
    };
    let (groups, _) = put(HierarchyKind::Cpu, &limits);
    assert!(groups.made.is_empty());
}
