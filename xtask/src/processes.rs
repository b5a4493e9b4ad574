//! Processes of this machine: programs that we start, and, found through /proc, those that a killed run left behind.

use std::fs;
use std::path::Path;
use std::process::Child;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use process_stat::ProcessStat;
use rustix::process::{Pid, Signal, kill_process};

/// The interval at which a process that is starting or ending is checked.
const LOOK_AGAIN: Duration = Duration::from_millis(20);

/// Returns whether the process is a running `cargo xtask`: its number may have been reused.
pub(crate) fn is_xtask(pid: Pid) -> bool {
    let name = fs::read_to_string(format!("/proc/{}/comm", pid.as_raw_nonzero()));
    is_running(pid) && name.is_ok_and(|name| name.trim() == "xtask")
}

/// Returns the processes whose command line names something in `folder`.
pub(crate) fn that_name(folder: &Path) -> Vec<Pid> {
    let Ok(entries) = fs::read_dir("/proc") else {
        return Vec::new();
    };
    entries
        .flatten()
        .filter_map(|entry| Pid::from_raw(entry.file_name().to_str()?.parse().ok()?))
        .filter(|pid| *pid != rustix::process::getpid() && names(*pid, folder))
        .collect()
}

/// Returns whether the process's command line names something in `folder`.
pub(crate) fn names(pid: Pid, folder: &Path) -> bool {
    let command = command_line(pid);
    command.contains(&format!("{}/", folder.display()))
}

/// Returns the arguments that the process was started with, separated by NUL bytes.
pub(crate) fn command_line(pid: Pid) -> String {
    let command = fs::read(format!("/proc/{}/cmdline", pid.as_raw_nonzero())).unwrap_or_default();
    String::from_utf8_lossy(&command).into_owned()
}

/// Waits until a started program is ready.
///
/// # Errors
/// If it ends before that, or takes longer, with the end of its log.
pub(crate) fn wait_until(
    name: &str,
    program: &mut Child,
    log: &Path,
    within: Duration,
    is_ready: impl Fn() -> bool,
) -> Result<()> {
    let deadline = Instant::now() + within;
    while !is_ready() {
        let log = || last_lines(&fs::read_to_string(log).unwrap_or_default());
        if let Some(status) = program.try_wait()? {
            bail!("`{name}` ended with {status}:\n{}", log());
        }
        if Instant::now() > deadline {
            bail!("`{name}` did not become ready:\n{}", log());
        }
        std::thread::sleep(LOOK_AGAIN);
    }
    Ok(())
}

fn last_lines(log: &str) -> String {
    let lines: Vec<_> = log.lines().collect();
    lines[lines.len().saturating_sub(20)..].join("\n")
}

/// Sends the signal that ends it properly, and SIGKILL after `grace`.
pub(crate) fn end(pid: Pid, signal: Signal, grace: Duration) {
    let _ = kill_process(pid, signal);
    let deadline = Instant::now() + grace;
    while is_running(pid) {
        if Instant::now() > deadline {
            let _ = kill_process(pid, Signal::KILL);
            return;
        }
        std::thread::sleep(LOOK_AGAIN);
    }
}

/// Returns whether it is running: a process that has ended and waits for its parent is not.
pub(crate) fn is_running(pid: Pid) -> bool {
    let stat = ProcessStat::read(format!("/proc/{}/stat", pid.as_raw_nonzero()));
    stat.is_some_and(|stat| !stat.has_ended())
}

/// Reads the process number at the beginning of a file.
pub(crate) fn read_pid(file: &Path) -> Option<Pid> {
    let text = fs::read_to_string(file).ok()?;
    Pid::from_raw(text.lines().next()?.trim().parse().ok()?)
}

pub(crate) fn pid(number: u32) -> Option<Pid> {
    i32::try_from(number).ok().and_then(Pid::from_raw)
}
