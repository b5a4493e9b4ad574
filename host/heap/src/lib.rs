//! Settings of the heap for a small program that runs for a long time.

#![warn(missing_docs)]

use std::convert::Infallible;
use std::time::Duration;

use tokio::time::{Instant, MissedTickBehavior, interval_at};

/// How long after a program's start the first memory is returned: most boards have loaded everything by then.
const FIRST: Duration = Duration::from_secs(5);
/// The time between later returns. One takes less than a millisecond, unless there is much to return.
const EVERY: Duration = Duration::from_secs(60);

/// The number of heaps that threads share.
#[cfg(target_env = "gnu")]
const HEAPS: libc::c_int = 2;

/// Makes all threads share a few heaps. glibc gives each thread its own, which keeps the memory that the
/// thread has freed: on an idle device, a quarter of its anonymous memory.
pub fn share_heaps() {
    #[cfg(target_env = "gnu")]
    #[expect(unsafe_code, reason = "a setting of the C library")]
    // SAFETY: it takes two numbers, and `main` calls this before there is another thread.
    unsafe {
        // If this is refused, memory is used as before.
        libc::mallopt(libc::M_ARENA_MAX, HEAPS);
    }
}

/// Returns memory that no heap uses any more to the system. By itself glibc returns only the end of a heap,
/// and a large body leaves holes.
pub fn return_unused() {
    #[cfg(target_env = "gnu")]
    #[expect(unsafe_code, reason = "a function of the C library that nothing wraps")]
    // SAFETY: it takes a number of bytes to keep, and may be called by any thread at any time.
    unsafe {
        // It does not matter whether there was anything to return.
        libc::malloc_trim(0);
    }
}

/// Returns unused memory to the system soon after the start, and then each minute: a start, an update and a long answer
/// leave holes that the heap would keep, up to half of what an idle program uses. Must be called in a tokio runtime.
pub async fn return_unused_regularly() -> Infallible {
    let mut returns = interval_at(Instant::now() + FIRST, EVERY);
    // After the system was suspended, once is enough.
    returns.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        returns.tick().await;
        return_unused();
    }
}

#[cfg(test)]
#[cfg(target_env = "gnu")]
mod tests {
    use super::*;

    /// Returns the anonymous memory of this process, in KiB.
    fn anonymous() -> u64 {
        let status = std::fs::read_to_string("/proc/self/status").unwrap();
        let mut lines = status.lines();
        let line = lines.find_map(|line| line.strip_prefix("RssAnon:"));
        let number = line.unwrap().trim().trim_end_matches(" kB");
        number.parse().unwrap()
    }

    #[tokio::test(start_paused = true)]
    async fn holes_in_the_heap_are_returned_soon_after_the_start_and_then_each_minute() {
        share_heaps();
        let returns = tokio::spawn(return_unused_regularly());
        for wait in [FIRST, EVERY, EVERY] {
            let before = anonymous();
            // Every other piece stays, so none of it is at the end of the heap.
            let mut pieces: Vec<Option<Vec<u8>>> =
                (0..16_000).map(|_| Some(vec![1; 4_000])).collect();
            let (left, _) = pieces.as_chunks_mut::<16>();
            for pieces in left {
                pieces[1..].fill(None);
            }
            let held = anonymous() - before;
            assert!(held > 50_000, "the heap holds {held} KiB");
            tokio::time::sleep(wait + Duration::from_millis(1)).await;
            let held = anonymous() - before;
            assert!(held < 20_000, "{held} KiB are still held");
        }
        returns.abort();
    }
}
