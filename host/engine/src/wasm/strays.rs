//! Processes of a service that its state does not name.
//!
//! The service's process writes the state. If the process was taken over, it may name a foreign process there for the
//! supervisor to kill, or hide from the supervisor; its user identifies it.

use std::fs;

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

/// Kills all processes of a user that belongs to one service.
pub(super) fn kill_all_of(uid: u32) {
    let Ok(processes) = fs::read_dir("/proc") else {
        return;
    };
    let numbers = processes
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter(|number| *number > 0)
        .filter_map(Pid::from_raw);
    for pid in numbers {
        let Ok(handle) = pidfd_open(pid, PidfdFlags::empty()) else {
            continue;
        };
        // The handle first: then the check concerns the process of the handle, or nothing.
        if uid_of(pid) == Some(uid) {
            let _ = pidfd_send_signal(&handle, Signal::KILL);
        }
    }
}

fn uid_of(pid: Pid) -> Option<u32> {
    let status = fs::read_to_string(format!("/proc/{}/status", pid.as_raw_pid())).ok()?;
    let uid = status.lines().find_map(|line| line.strip_prefix("Uid:"))?;
    uid.split_ascii_whitespace().next()?.parse().ok()
}
