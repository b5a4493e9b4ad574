//! What the kernel says of a process, and how many files this one may open.

use std::fs;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// What a process has and has used.
#[derive(Debug, Clone, Copy, Default)]
pub struct Usage {
    /// Resident memory, in bytes.
    pub resident: u64,
    /// Time of processors since its start.
    pub cpu: Duration,
}

/// Of the process with this number.
///
/// # Errors
/// Where there is none.
pub fn usage(process: u32) -> Result<Usage> {
    let read = |file: &str| {
        fs::read_to_string(format!("/proc/{process}/{file}"))
            .with_context(|| format!("process {process} is gone"))
    };
    let (pages, times) = (read("statm")?, read("stat")?);
    let resident = pages.split(' ').nth(1).and_then(|pages| pages.parse().ok());
    let resident: u64 = resident.context("the kernel does not give its memory")?;
    // Its name, in brackets, may have spaces.
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

/// Has this process open as many files as the system lets it.
///
/// # Errors
/// Where that is less than `needed`.
pub fn allow_open_files(needed: u64) -> Result<()> {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: limit.maximum,
        ..limit
    };
    // Where it cannot be raised, what there is may be enough.
    let _ = setrlimit(Resource::Nofile, raised);
    match getrlimit(Resource::Nofile).current {
        Some(most) if most < needed => bail!(
            "{needed} files are needed, and the system lets one process open {most}: raise its hard limit \
             (`ulimit -Hn`, `LimitNOFILE` of systemd)"
        ),
        _ => Ok(()),
    }
}
