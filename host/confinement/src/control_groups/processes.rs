//! The processes in a group, and their end.

use std::collections::HashSet;
use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use super::hierarchies::HierarchyKind;
use super::{GroupLocation, places};

/// Kills all processes in the groups called `name`. Returns handles to them, which become readable when they have
/// ended; `None` if there are no such groups.
///
/// A process that another one of the group creates meanwhile may be missing: call this again once these have ended,
/// until it finds none.
///
/// # Errors
/// If the processes of a group cannot be determined.
pub fn kill_groups(name: &Path) -> io::Result<Option<Vec<OwnedFd>>> {
    kill_in(&places(name))
}

fn kill_in(places: &[GroupLocation]) -> io::Result<Option<Vec<OwnedFd>>> {
    let Some(found) = processes_in(places)? else {
        return Ok(None);
    };
    let mut handles = Vec::new();
    for pid in found {
        match pidfd_open(pid, PidfdFlags::empty()) {
            Ok(handle) => handles.push((pid, handle)),
            Err(Errno::SRCH | Errno::INVAL) => {}
            Err(error) => return Err(error.into()),
        }
    }
    // The number of a process that has ended may belong to another one by now: only a number that is still in the group
    // had its process when the handle was opened.
    let current = processes_in(places)?.unwrap_or_default();
    let handles = handles
        .into_iter()
        .filter(|(pid, _)| current.contains(pid))
        .map(|(_, handle)| handle);
    let handles: Vec<OwnedFd> = handles.collect();
    for place in places {
        if place.kind == HierarchyKind::Unified {
            // Also reaches processes that are just being created; exists since Linux 5.14.
            let _ = fs::write(place.path.join("cgroup.kill"), "1");
        }
    }
    for handle in &handles {
        let _ = pidfd_send_signal(handle, Signal::KILL);
    }
    Ok(Some(handles))
}

/// Returns the processes in any of these groups; `None` if none of the groups exists.
fn processes_in(places: &[GroupLocation]) -> io::Result<Option<HashSet<Pid>>> {
    let mut found = None;
    for place in places {
        let path = place.path.join("cgroup.procs");
        let text = match fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if is_gone(&error) => continue,
            Err(error) => {
                let text = format!("failed to read `{}`: {error}", path.display());
                return Err(io::Error::new(error.kind(), text));
            }
        };
        // 0 stands for a process that has no number here.
        let numbers = text.lines().filter_map(|line| line.trim().parse().ok());
        let pids = numbers
            .filter(|number| *number > 0)
            .filter_map(Pid::from_raw);
        found.get_or_insert_with(HashSet::new).extend(pids);
    }
    Ok(found)
}

/// Returns whether the group did not exist, or was removed while its file was read.
fn is_gone(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::NotFound
        || error.raw_os_error() == Some(Errno::NODEV.raw_os_error())
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt as _;
    use std::path::PathBuf;
    use std::process::{Child, Command};

    use super::*;

    fn sleep() -> Child {
        Command::new("sleep").arg("1000").spawn().unwrap()
    }

    fn place(path: PathBuf, kind: HierarchyKind) -> GroupLocation {
        GroupLocation {
            outermost: path.clone(),
            path,
            kind,
        }
    }

    /// In an ordinary folder, the files of a control group are ordinary files.
    #[test]
    fn every_process_of_the_groups_is_killed_and_no_other() {
        let root = tempfile::tempdir().unwrap();
        let (mut member, mut other) = (sleep(), sleep());
        let (memory, pids) = (root.path().join("memory"), root.path().join("pids"));
        for folder in [&memory, &pids] {
            fs::create_dir(folder).unwrap();
            fs::write(folder.join("cgroup.procs"), format!("0\n{}\n", member.id())).unwrap();
        }
        let places = [
            place(memory, HierarchyKind::Memory),
            place(root.path().join("cpu"), HierarchyKind::Cpu),
            place(pids, HierarchyKind::Pids),
        ];
        assert_eq!(kill_in(&places).unwrap().unwrap().len(), 1);
        assert_eq!(member.wait().unwrap().signal(), Some(Signal::KILL.as_raw()));
        // The file still contains the number, which no process has.
        assert_eq!(kill_in(&places).unwrap().unwrap().len(), 0);
        assert!(other.try_wait().unwrap().is_none());
        other.kill().unwrap();
        other.wait().unwrap();
    }

    #[test]
    fn a_group_of_version_2_is_killed_whole() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().to_owned();
        fs::write(path.join("cgroup.procs"), "").unwrap();
        let places = [place(path.clone(), HierarchyKind::Unified)];
        assert_eq!(kill_in(&places).unwrap().unwrap().len(), 0);
        assert_eq!(fs::read_to_string(path.join("cgroup.kill")).unwrap(), "1");
    }

    #[test]
    fn groups_that_do_not_exist_are_not_empty_groups() {
        let places = [place("/proc/no/group".into(), HierarchyKind::Unified)];
        assert!(kill_in(&places).unwrap().is_none());
    }
}
