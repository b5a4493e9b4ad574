//! What the supervisor and the processes that it started hold in memory.

use std::fs;

use tests::children_of;

/// Returns the memory of a process and all its descendants that is not clean pages of a file, in
/// KiB.
#[must_use]
pub fn held_by(pid: i32) -> u64 {
    let below: u64 = children_of(pid).into_iter().map(held_by).sum();
    read_anonymous_memory(pid) + below
}

/// Returns 0 if the process has ended.
fn read_anonymous_memory(pid: i32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("RssAnon:"));
    let number = line.and_then(|line| line.trim().split(' ').next());
    number.and_then(|number| number.parse().ok()).unwrap_or(0)
}
