//! Makes the process kill itself at a named moment, like a power cut: nothing is written, closed or reported first.
//!
//! The binary reads `SUPERVISOR_TEST_ABORT_AT=<moment>:<n>` once, at its start, if it was built with its feature
//! `abort-at`.

use std::str::FromStr;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::Moments;
use crate::moments::MOMENTS;

/// Kills the process the `count`th time that `moment` occurs.
#[derive(Debug)]
pub struct AbortAt {
    moment: String,
    /// The remaining count; at 0 the moment has passed.
    left: AtomicU32,
}

impl FromStr for AbortAt {
    type Err = String;

    /// Parses `<moment>:<n>`.
    fn from_str(text: &str) -> Result<Self, String> {
        let expected = || {
            format!(
                "expected one of {} and a count, as in `in-pull:1`",
                MOMENTS.join(", ")
            )
        };
        let (moment, count) = text.split_once(':').ok_or_else(expected)?;
        let count: u32 = count.parse().map_err(|_| expected())?;
        if !MOMENTS.contains(&moment) || count == 0 {
            return Err(expected());
        }
        Ok(AbortAt {
            moment: moment.to_owned(),
            left: AtomicU32::new(count),
        })
    }
}

impl From<AbortAt> for Moments {
    fn from(abort_at: AbortAt) -> Moments {
        Moments::with_listener(move |moment| abort_at.reached(moment))
    }
}

impl AbortAt {
    /// Counts down if `moment` is the named one.
    fn reached(&self, moment: &str) {
        if moment != self.moment {
            return;
        }
        let count_down = |left: u32| left.checked_sub(1);
        let before = self
            .left
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, count_down);
        if before == Ok(1) {
            tracing::warn!("killing this process at `{moment}`, as a test asked for");
            // SIGKILL, not abort: none of our code may run any more.
            let _ = rustix::process::kill_process(
                rustix::process::getpid(),
                rustix::process::Signal::KILL,
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_checked() {
        assert!("in-pull:1".parse::<AbortAt>().is_ok());
        for refused in ["", "in-pull", "in-pull:0", "in-pull:x", "nowhere:1"] {
            assert!(refused.parse::<AbortAt>().is_err(), "{refused}");
        }
    }
}
