//! The processes of wasm services, which outlive their supervisor by design and must not outlive a test.

use std::fs;
use std::path::Path;

use rustix::process::{Pid, Signal, kill_process};

/// Returns the processes that `parent` started and that are still running.
#[must_use]
pub fn children_of(parent: i32) -> Vec<i32> {
    let Ok(processes) = fs::read_dir("/proc") else {
        return Vec::new();
    };
    processes
        .filter_map(|entry| {
            let pid: i32 = entry.ok()?.file_name().to_str()?.parse().ok()?;
            let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
            // The name, in parentheses, may contain anything.
            let (_, after_name) = stat.rsplit_once(") ")?;
            let mut words = after_name.split(' ');
            let has_ended = words.next()? == "Z";
            let is_ours = words.next()?.parse() == Ok(parent);
            (is_ours && !has_ended).then_some(pid)
        })
        .collect()
}

/// Returns the processes that run services of the supervisor with this state folder, by their command line:
/// `supervisor-wasm wasm-service --record <state folder>/...`.
#[must_use]
pub fn services_of(state_dir: &Path) -> Vec<i32> {
    let Ok(processes) = fs::read_dir("/proc") else {
        return Vec::new();
    };
    let folder = state_dir.to_string_lossy().into_owned();
    processes
        .filter_map(|entry| {
            let pid: i32 = entry.ok()?.file_name().to_str()?.parse().ok()?;
            let command = fs::read(format!("/proc/{pid}/cmdline")).ok()?;
            let arguments: Vec<_> = command.split(|byte| *byte == 0).collect();
            let is_service = arguments.get(1) == Some(&b"wasm-service".as_slice());
            let is_ours = arguments
                .iter()
                .any(|argument| argument.starts_with(folder.as_bytes()));
            (is_service && is_ours).then_some(pid)
        })
        .collect()
}

/// Kills them.
pub(crate) fn kill_services_of(state_dir: &Path) {
    for pid in services_of(state_dir) {
        kill(pid);
    }
}

pub(crate) fn kill(pid: i32) {
    if let Some(pid) = Pid::from_raw(pid) {
        // It may have ended by itself.
        let _ = kill_process(pid, Signal::KILL);
    }
}
