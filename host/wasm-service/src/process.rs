//! A process that can be found again: by its number, its start time and its boot.
//!
//! A number by itself is not enough, since the system assigns it to another process once the first has ended.

use std::fs;
use std::io;
use std::os::fd::OwnedFd;

use process_stat::ProcessStat;
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use serde::{Deserialize, Serialize};

/// One process of one boot, never confused with another.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessId {
    /// The process's number, in the PID namespace of the supervisor.
    pub pid: i32,
    /// Clock ticks from the boot to its start.
    pub start: u64,
    /// The id of the boot.
    pub boot: String,
}

impl ProcessId {
    /// Returns the id of this process.
    ///
    /// # Errors
    /// If `/proc` cannot be read.
    pub fn own() -> io::Result<Self> {
        ProcessId::from_pid(std::process::id())
    }

    /// Returns the id of the process that has this number now.
    ///
    /// # Errors
    /// If there is none.
    pub fn from_pid(pid: u32) -> io::Result<Self> {
        let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
        let start = pid.and_then(|pid| Some((pid.as_raw_pid(), start_time(pid)?)));
        let (pid, start) = start.ok_or(io::ErrorKind::NotFound)?;
        let boot = boot_id()?;
        Ok(ProcessId { pid, start, boot })
    }

    /// Returns `None` for a number that no process has; a record may be damaged.
    fn pid(&self) -> Option<Pid> {
        (self.pid > 0).then(|| Pid::from_raw(self.pid)).flatten()
    }

    /// Returns a handle to the process while it lives; `None` once it has ended. The handle never refers to another
    /// process, even if the number is assigned again.
    ///
    /// # Errors
    /// If the system has no such handles, or no more of them.
    pub fn open(&self) -> io::Result<Option<OwnedFd>> {
        let Some(pid) = self.pid() else {
            return Ok(None);
        };
        let handle = match pidfd_open(pid, PidfdFlags::empty()) {
            Ok(handle) => handle,
            Err(rustix::io::Errno::SRCH | rustix::io::Errno::INVAL) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        // Checked after the handle was opened: this notices a handle to another process.
        Ok(self.is_alive().then_some(handle))
    }

    /// Whether the process is still running. One that has ended and was not waited for yet counts as ended.
    #[must_use]
    pub fn is_alive(&self) -> bool {
        let Some(pid) = self.pid() else {
            return false;
        };
        start_time(pid) == Some(self.start) && boot_id().is_ok_and(|boot| boot == self.boot)
    }

    /// Returns the user of the process; `None` if it has ended.
    #[must_use]
    pub fn uid(&self) -> Option<u32> {
        let path = format!("/proc/{}/status", self.pid()?.as_raw_pid());
        // It begins with the process's name, which need not be UTF-8.
        let status = fs::read(path).ok()?;
        let status = String::from_utf8_lossy(&status);
        let uid = status.lines().find_map(|line| line.strip_prefix("Uid:"))?;
        let uid = uid.split_ascii_whitespace().next()?.parse().ok()?;
        // Checked after reading: this notices if the number belongs to another process by now.
        self.is_alive().then_some(uid)
    }

    /// Whether the process was started since the last boot, and so might have ended by itself.
    #[must_use]
    pub fn is_of_this_boot(&self) -> bool {
        boot_id().is_ok_and(|boot| boot == self.boot)
    }
}

/// Returns when `pid` started; `None` if it has ended or is a zombie.
fn start_time(pid: Pid) -> Option<u64> {
    let stat = ProcessStat::read(format!("/proc/{}/stat", pid.as_raw_pid()))?;
    (!stat.has_ended()).then_some(stat.start)
}

fn boot_id() -> io::Result<String> {
    let id = fs::read_to_string("/proc/sys/kernel/random/boot_id")?;
    Ok(id.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_lives() {
        let own = ProcessId::own().unwrap();
        assert!(own.is_alive());
        assert!(own.open().unwrap().is_some());
        assert_eq!(own.uid(), Some(rustix::process::getuid().as_raw()));
    }

    #[test]
    fn another_process_with_the_same_number_is_not_this_one() {
        let own = ProcessId::own().unwrap();
        let earlier = ProcessId {
            start: own.start - 1,
            ..own.clone()
        };
        assert!(!earlier.is_alive());
        assert!(earlier.open().unwrap().is_none());
        let before_reboot = ProcessId {
            boot: "00000000-0000-0000-0000-000000000000".into(),
            ..own.clone()
        };
        assert!(!before_reboot.is_alive());
        assert!(!before_reboot.is_of_this_boot());
        let nonsense = ProcessId { pid: -1, ..own };
        assert!(!nonsense.is_alive());
        assert!(nonsense.open().unwrap().is_none());
    }

    #[test]
    fn an_ended_child_counts_as_ended_before_it_is_waited_for() {
        let mut child = std::process::Command::new("sleep")
            .arg("1000")
            .spawn()
            .unwrap();
        let pid = Pid::from_child(&child);
        let id = ProcessId {
            pid: pid.as_raw_pid(),
            start: start_time(pid).unwrap(),
            boot: boot_id().unwrap(),
        };
        let handle = id.open().unwrap().unwrap();
        child.kill().unwrap();
        let mut ended = [rustix::event::PollFd::new(
            &handle,
            rustix::event::PollFlags::IN,
        )];
        rustix::event::poll(&mut ended, None).unwrap();
        assert!(!id.is_alive());
        child.wait().unwrap();
        assert!(!id.is_alive());
    }
}
