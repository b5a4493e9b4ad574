//! The kernel's data about a process.

use std::fs;

use anyhow::{Context, Result};

/// Resident memory of one process.
pub(crate) struct Memory {
    /// All pages, including shared ones, in bytes.
    pub(crate) resident: u64,
    /// Its own pages that no file backs, in bytes: the real cost for the device.
    pub(crate) anonymous: u64,
    /// The maximum so far, in bytes.
    pub(crate) peak: u64,
}

pub(crate) fn memory(pid: u32) -> Result<Memory> {
    let text = fs::read_to_string(format!("/proc/{pid}/status"))
        .with_context(|| format!("process {pid} is gone"))?;
    let field = |name: &str| -> Result<u64> {
        let line = text
            .lines()
            .find_map(|line| line.strip_prefix(name))
            .with_context(|| format!("the kernel does not give {name}"))?;
        let kibibytes: u64 = line
            .trim_start_matches(':')
            .trim()
            .trim_end_matches(" kB")
            .trim()
            .parse()?;
        Ok(kibibytes << 10)
    };
    Ok(Memory {
        resident: field("VmRSS")?,
        anonymous: field("RssAnon")?,
        peak: field("VmHWM")?,
    })
}

/// Returns kernel, processors and memory of this machine, in one line.
pub(crate) fn machine() -> String {
    let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
    let cpuinfo = read("/proc/cpuinfo");
    let model = cpuinfo
        .lines()
        .find_map(|line| line.strip_prefix("model name"))
        .map_or("an unnamed processor", |rest| {
            rest.trim_start_matches([' ', '\t', ':'])
        });
    let processors = cpuinfo
        .lines()
        .filter(|line| line.starts_with("processor"))
        .count();
    let release = read("/proc/sys/kernel/osrelease");
    format!("{processors} × {model}, Linux {}", release.trim())
}
