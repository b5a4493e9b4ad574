//! Whether a compiler makes progress.
//!
//! Compilers have a low priority, so the clock says little: on a busy board a compilation of seconds takes minutes. A
//! compiler that waits for its turn still gets a little of the processor; one that hangs gets nothing.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use process_stat::ProcessStat;
use tokio::time::Instant;

/// How many times a compiler is checked during the time for which it may make no progress.
const CHECKS: u32 = 12;

/// Returns when `process` has neither used CPU time nor added to `size`, the bytes of its output, for the duration
/// `idle`. If the system does not show the process, it counts as making progress.
pub(crate) async fn until_stuck(process: Option<u32>, idle: Duration, size: &AtomicU64) {
    let mut progress = Progress {
        latest: (None, 0),
        since: Instant::now(),
    };
    loop {
        tokio::time::sleep(idle / CHECKS).await;
        let used = process.and_then(ticks_of);
        if progress.pause(Instant::now(), used, size.load(Relaxed)) >= idle {
            return;
        }
    }
}

/// The progress of a compiler at its latest change.
struct Progress {
    /// The CPU time in ticks, if the system shows it, and the bytes of output.
    latest: (Option<u64>, u64),
    since: Instant,
}

impl Progress {
    /// Takes note of the CPU time and the output at `now`, and returns for how long they have been the same.
    fn pause(&mut self, now: Instant, used: Option<u64>, size: u64) -> Duration {
        if used.is_none() || self.latest != (used, size) {
            self.latest = (used, size);
            self.since = now;
        }
        now.saturating_duration_since(self.since)
    }
}

/// Returns the CPU time of all threads of a process, in ticks of the clock.
fn ticks_of(process: u32) -> Option<u64> {
    Some(ProcessStat::read(format!("/proc/{process}/stat"))?.own_time())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns after how many seconds a compiler counts as stuck that shows this CPU time and output at each second.
    fn stuck_after(at: impl Fn(u64) -> (Option<u64>, u64)) -> Option<u64> {
        let begun = Instant::now();
        let mut progress = Progress {
            latest: (None, 0),
            since: begun,
        };
        (0..1000).find(|second| {
            let (used, size) = at(*second);
            let now = begun + Duration::from_secs(*second);
            progress.pause(now, used, size) >= Duration::from_secs(60)
        })
    }

    #[test]
    fn a_compiler_is_stuck_that_neither_computes_nor_writes() {
        assert_eq!(stuck_after(|_| (Some(7), 0)), Some(60));
        // It stops after 100 s.
        assert_eq!(stuck_after(|second| (Some(second.min(100)), 0)), Some(160));
        assert_eq!(stuck_after(|second| (Some(7), second.min(100))), Some(160));
    }

    #[test]
    fn a_compiler_is_not_stuck_that_gets_little_of_the_processor_or_waits_for_a_slow_disk() {
        assert_eq!(stuck_after(|second| (Some(second / 59), 0)), None);
        assert_eq!(stuck_after(|second| (Some(7), second / 59)), None);
        // The system does not show it.
        assert_eq!(stuck_after(|_| (None, 0)), None);
    }

    #[test]
    fn the_system_shows_the_time_of_this_process() {
        assert!(ticks_of(std::process::id()).is_some());
    }
}
