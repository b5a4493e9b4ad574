//! What a confined process can no longer do, and what it still can. As root all walls are tested; as any other user,
//! those that need no rights.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test fails by panicking"
)]

use std::collections::BTreeMap;
use std::fs;
use std::fs::Permissions;
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::path::{Path, PathBuf};
use std::process::Command;

use confinement::{Report, Wall};

/// An unused user number.
const SOMEBODY: u32 = 1_900_000_123;

const ALL: &str = "bounds,files,system-calls";

/// Confines a process that becomes `uid` (0 keeps its user) behind `walls`, makes it try all of `attempts`, and
/// returns the outcome of each.
fn confined(uid: u32, walls: &str, attempts: &[&str]) -> (Report, BTreeMap<String, String>) {
    let home = tempfile::tempdir().unwrap();
    fs::set_permissions(home.path(), Permissions::from_mode(0o755)).unwrap();
    let folder = home.path().join("folder");
    fs::create_dir(&folder).unwrap();
    if uid != 0 {
        chown(&folder, Some(uid), Some(uid)).unwrap();
    }
    let output = Command::new(program())
        .arg(&folder)
        .args([&uid.to_string(), walls])
        .args(attempts)
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let (report, rest) = text.split_once('\n').unwrap_or((&text, ""));
    let report = serde_json::from_str(report).unwrap_or_else(|error| panic!("{error} in {text}"));
    let outcomes = rest
        .lines()
        .filter_map(|line| line.split_once(' '))
        .map(|(what, came)| (what.to_owned(), came.to_owned()))
        .collect();
    (report, outcomes)
}

fn check_refused(uid: u32, walls: &str, attempts: &[&str]) {
    let (report, outcomes) = confined(uid, walls, attempts);
    for attempt in attempts {
        let came = outcomes.get(*attempt).map(String::as_str);
        assert!(
            came.is_some_and(|came| came != "done"),
            "{attempt}: {came:?}, {report:?}"
        );
    }
}

/// Returns the example next to this test: Cargo builds both.
fn program() -> PathBuf {
    let own = std::env::current_exe().unwrap();
    let target = own.parent().and_then(Path::parent).unwrap();
    let program = target.join("examples/confined");
    assert!(
        program.is_file(),
        "build it: cargo build -p confinement --example confined"
    );
    program
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// The same attempts, with each wall that refuses them on its own.
#[test]
fn each_wall_refuses_by_itself_what_an_attacker_would_do_next() {
    let calls = [
        "netlink",
        "unix",
        "packet",
        "execve",
        "mount",
        "ptrace",
        "be-traced",
        "namespace",
        "become-root",
        "kill-parent",
    ];
    check_refused(0, "system-calls", &calls);
    let files = [
        "read-shadow",
        "read-passwd",
        "write-outside",
        "kill-parent",
        "read-memory-of-parent",
    ];
    check_refused(0, "files", &files);
    check_refused(0, "bounds", &["more-descriptors"]);
    // Without any capability, root can do only what its files allow.
    check_refused(0, "", &["mount", "chown", "packet"]);
    if is_root() {
        let user = [
            "read-shadow",
            "write-outside",
            "kill-parent",
            "ptrace",
            "become-root",
        ];
        check_refused(SOMEBODY, "", &user);
    }
}

/// Only processes that may query which of their pages were written can do so, and none learns where the pages are.
#[test]
fn the_file_of_its_pages_does_not_say_where_they_are() {
    let scan = ["scan-pages"];
    check_refused(0, "system-calls", &scan);
    let (report, outcomes) = confined(0, "system-calls,page-map", &scan);
    // A kernel before 6.7 does not know the call.
    let came = outcomes["scan-pages"].as_str();
    assert!(
        came == "done" || came.contains("ioctl"),
        "{came}, {report:?}"
    );
    if is_root() {
        let (_, outcomes) = confined(SOMEBODY, "", &["find-pages-as-root"]);
        assert_eq!(outcomes["find-pages-as-root"], "done", "the test is wrong");
        check_refused(SOMEBODY, "", &["find-pages"]);
    }
}

#[test]
fn a_confined_process_does_what_it_is_for() {
    let uid = if is_root() { SOMEBODY } else { 0 };
    let attempts = [
        "read-hostname",
        "read-status",
        "write-inside",
        "udp",
        "thread",
    ];
    let (report, outcomes) = confined(uid, ALL, &attempts);
    for attempt in attempts {
        let came = outcomes.get(attempt).map(String::as_str);
        assert_eq!(came, Some("done"), "{attempt}, {report:?}");
    }
}

#[test]
fn the_report_lists_each_wall_in_force() {
    if !is_root() {
        return;
    }
    let (report, _) = confined(SOMEBODY, ALL, &[]);
    assert_eq!(report.missing, []);
    for wall in [
        Wall::User,
        Wall::Capabilities,
        Wall::NoNewPrivileges,
        Wall::Files,
        Wall::SystemCalls,
        Wall::Bounds,
    ] {
        assert!(report.in_force.contains(&wall), "{wall} in {report:?}");
    }
}

#[test]
fn a_process_that_stays_root_reports_that_and_still_has_no_capability() {
    if !is_root() {
        return;
    }
    let (report, outcomes) = confined(0, ALL, &["read-shadow", "kill-parent"]);
    assert!(report.in_force.contains(&Wall::Capabilities), "{report:?}");
    let missing: Vec<Wall> = report.missing.iter().map(|missing| missing.wall).collect();
    assert_eq!(missing, [Wall::User]);
    assert_eq!(report.missing_in_words(), "user (the process stays root)");
    assert!(outcomes.values().all(|came| came != "done"), "{outcomes:?}");
    // Only a missing capability refuses this.
    let (_, outcomes) = confined(0, "", &["chown"]);
    assert_ne!(outcomes["chown"], "done");
}
