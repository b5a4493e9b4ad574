//! The kernel's data about a process, and the limit on open files of this one.

use std::fs;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// The resources that a process has and has used.
#[derive(Debug, Clone, Copy, Default)]
pub struct Usage {
    /// Resident memory, in bytes.
    pub resident: u64,
    /// CPU time since its start.
    pub cpu: Duration,
}

/// Returns the data of the process with this number.
///
/// # Errors
/// If there is none.
pub fn usage(process: u32) -> Result<Usage> {
    let read = |file: &str| {
        fs::read_to_string(format!("/proc/{process}/{file}"))
            .with_context(|| format!("process {process} is gone"))
    };
    let (pages, times) = (read("statm")?, read("stat")?);
    let resident = pages.split(' ').nth(1).and_then(|pages| pages.parse().ok());
    let resident: u64 = resident.context("the kernel does not give its memory")?;
    // Its name, in parentheses, may contain spaces.
    let times = times.rsplit(") ").next().unwrap_or_default();
    let mut ticks = times.split(' ').skip(11).take(2).map(str::parse::<u64>);
    let (Some(Ok(user)), Some(Ok(system))) = (ticks.next(), ticks.next()) else {
        bail!("the kernel does not give its time");
    };
    let milliseconds = (user + system) * 1000 / rustix::param::clock_ticks_per_second().max(1);
    let page = u64::try_from(rustix::param::page_size()).unwrap_or(4096);
    Ok(Usage {
        resident: resident * page,
        cpu: Duration::from_millis(milliseconds),
    })
}

/// Lets this process open as many files as the system allows.
///
/// # Errors
/// If that is less than `needed`.
pub fn allow_open_files(needed: u64) -> Result<()> {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: limit.maximum,
        ..limit
    };
    // If it cannot be raised, the present limit may be enough.
    let _ = setrlimit(Resource::Nofile, raised);
    match getrlimit(Resource::Nofile).current {
        Some(most) if most < needed => bail!(
            "{needed} files are needed, and the system lets one process open {most}: raise its hard limit \
             (`ulimit -Hn`, `LimitNOFILE` of systemd)"
        ),
        _ => Ok(()),
    }
}
