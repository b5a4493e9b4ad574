//! Processes of a service that its state does not name.
//!
//! The service's process writes the state. If the process was taken over, it may name a foreign process there for the
//! supervisor to kill, or none. What it cannot change identifies it: its control group, and its user.

use std::fs;
use std::io;
use std::os::fd::OwnedFd;

use rustix::process::{Pid, Signal, pidfd_send_signal};
use tokio::time::{Instant, timeout_at};
use wasm_service::process::ProcessId;

use super::processes::DEATH;
use super::readable::readable;
use super::record::ContainerRecord;
use super::{Wasm, WasmState, cgroups};
use crate::EngineError;

impl Wasm {
    /// Kills all processes of a container, whatever its state says, and returns when they are gone.
    pub(super) async fn end_strays(&self, record: &ContainerRecord) -> Result<(), EngineError> {
        let failed = |error: io::Error| {
            EngineError::failed(format!("stop the container `{}`", record.name), error)
        };
        let deadline = Instant::now() + DEATH;
        loop {
            let of = record.clone();
            let found = self.blocking(move |shared| Ok(shared.kill_strays(&of)));
            let found = found.await?.map_err(failed)?;
            if found.is_empty() {
                return Ok(());
            }
            tracing::warn!(
                container = %record.id,
                "killed {} processes of the container that its state did not name",
                found.len()
            );
            for handle in found {
                let handle = readable(handle).map_err(failed)?;
                if timeout_at(deadline, handle.readable()).await.is_err() {
                    return Err(failed(io::Error::other("its processes do not end")));
                }
            }
            // Processes that create others faster than they are killed.
            if Instant::now() > deadline {
                return Err(failed(io::Error::other("its processes do not end")));
            }
        }
    }
}

impl WasmState {
    /// Kills what is in the container's control groups; if it has none, the processes of its user.
    fn kill_strays(&self, record: &ContainerRecord) -> io::Result<Vec<OwnedFd>> {
        if let Some(found) = cgroups::kill(record, &self.ownership)? {
            return Ok(found);
        }
        match record.user {
            Some(user) => kill_all_of(user.uid, &self.others_of_user(record, user.uid)),
            None => Ok(Vec::new()),
        }
    }

    /// Returns the processes of the other containers of a user: during an update, the new container of the service runs
    /// as the same user.
    fn others_of_user(&self, record: &ContainerRecord, uid: u32) -> Vec<ProcessId> {
        let others = self.containers.current_records().into_iter();
        others
            .filter(|other| other.id != record.id && other.user.is_some_and(|user| user.uid == uid))
            .map(|other| self.state(&other.id))
            .filter(|state| state.is_served())
            .filter_map(|state| state.process)
            .collect()
    }
}

/// Kills all processes of a user that belongs to one service, except `spared`, and returns handles to them.
fn kill_all_of(uid: u32, spared: &[ProcessId]) -> io::Result<Vec<OwnedFd>> {
    let mut found = Vec::new();
    let processes = fs::read_dir("/proc")?.flatten();
    let numbers = processes
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter(|number| *number > 0)
        .filter_map(Pid::from_raw);
    for pid in numbers {
        if uid_of(pid) != Some(uid) {
            continue;
        }
        // Otherwise it has ended.
        let Ok(process) = ProcessId::from_pid(pid.as_raw_pid().unsigned_abs()) else {
            continue;
        };
        if spared.contains(&process) {
            continue;
        }
        let Some(handle) = process.open()? else {
            continue;
        };
        // The handle first: then the check concerns the process of the handle, or nothing.
        if process.uid() == Some(uid) {
            let _ = pidfd_send_signal(&handle, Signal::KILL);
            found.push(handle);
        }
    }
    Ok(found)
}

fn uid_of(pid: Pid) -> Option<u32> {
    let status = fs::read_to_string(format!("/proc/{}/status", pid.as_raw_pid())).ok()?;
    let uid = status.lines().find_map(|line| line.strip_prefix("Uid:"))?;
    uid.split_ascii_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
    use std::process::{Child, Command};

    use super::*;

    fn sleep_as(uid: u32) -> Child {
        let mut command = Command::new("sleep");
        command.arg("1000").uid(uid).spawn().unwrap()
    }

    #[test]
    fn all_processes_of_a_user_are_killed_except_those_of_its_other_containers() {
        if !rustix::process::geteuid().is_root() {
            return;
        }
        // Two numbers that nothing else on this machine uses.
        let uid = 1_800_000_000 + 2 * std::process::id();
        let (mut hidden, mut successor) = (sleep_as(uid), sleep_as(uid));
        let mut foreign = sleep_as(uid + 1);
        let spared = ProcessId::from_pid(successor.id()).unwrap();
        assert_eq!(kill_all_of(uid, &[spared]).unwrap().len(), 1);
        assert_eq!(hidden.wait().unwrap().signal(), Some(9));
        for kept in [&mut successor, &mut foreign] {
            assert!(kept.try_wait().unwrap().is_none());
            kept.kill().unwrap();
            kept.wait().unwrap();
        }
        assert_eq!(kill_all_of(uid, &[]).unwrap().len(), 0);
    }
}
