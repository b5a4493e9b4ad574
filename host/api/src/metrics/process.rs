//! The kernel's data about this process.

use std::fs;
use std::time::Duration;

use process_stat::ProcessStat;

/// This process, at one moment. A value that the kernel does not provide is 0.
#[derive(Debug, Default)]
pub(super) struct Process {
    /// In bytes.
    pub(super) resident: u64,
    /// In bytes.
    pub(super) anonymous: u64,
    pub(super) cpu: Duration,
    pub(super) open_files: u64,
}

impl Process {
    /// Reads files of `/proc`, which needs no disk access.
    pub(super) fn look() -> Self {
        let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
        let open_files = fs::read_dir("/proc/self/fd").map_or(0, Iterator::count);
        Process {
            resident: kibibytes(&status, "VmRSS:") << 10,
            anonymous: kibibytes(&status, "RssAnon:") << 10,
            cpu: ProcessStat::read("/proc/self/stat").map_or(Duration::ZERO, cpu),
            // The folder that was just listed is one of them.
            open_files: u64::try_from(open_files.saturating_sub(1)).unwrap_or(u64::MAX),
        }
    }
}

fn kibibytes(status: &str, field: &str) -> u64 {
    let line = status.lines().find_map(|line| line.strip_prefix(field));
    let number = line.and_then(|line| line.trim().strip_suffix("kB"));
    number
        .and_then(|number| number.trim().parse().ok())
        .unwrap_or(0)
}

/// Returns the user and system time; the kernel counts hundredths of a second.
fn cpu(stat: ProcessStat) -> Duration {
    Duration::from_millis(stat.own_time().saturating_mul(10))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_has_memory_time_and_files() {
        let process = Process::look();
        assert!(process.resident > 1 << 20, "{process:?}");
        assert!(process.anonymous > 0 && process.anonymous < process.resident);
        assert!(process.open_files > 2, "{process:?}");
        let stat = "12 (a) b)) S 1 2 3 4 5 6 7 8 9 10 150 25 0 0 20 0 1 0 99";
        let stat = ProcessStat::parse(stat).unwrap();
        assert_eq!(cpu(stat), Duration::from_millis(1750));
        assert_eq!(kibibytes("VmRSS:\t    12 kB\nX: 1 kB\n", "VmRSS:"), 12);
        assert_eq!(kibibytes("VmRSS: all of it", "VmRSS:"), 0);
    }
}
