//! A facility for tests: the process kills itself at a named moment, as a power cut would.
//!
//! The binary reads `SUPERVISOR_TEST_ABORT_AT=<moment>:<n>` once, at its start, and passes it in. It is
//! of no use to anybody else: nothing is written, closed or told before the end.

use std::str::FromStr;
use std::sync::atomic::{AtomicU32, Ordering};

/// The moments, and what has just happened at each.
///
/// | moment | |
/// |---|---|
/// | `in-pull` | the first progress of a pull |
/// | `after-create` | a container was created, and is not started yet |
/// | `lock-taken` | the update locks of an app were taken |
/// | `killed-not-started` | an old container was removed, and the new one is not made yet |
/// | `renamed` | a container was renamed |
pub const MOMENTS: &[&str] = &[
    "in-pull",
    "after-create",
    "lock-taken",
    "killed-not-started",
    "renamed",
];

/// Kill the process the `count`th time that `moment` comes.
#[derive(Debug)]
pub struct AbortAt {
    moment: String,
    /// Times left; at 0 the moment has passed.
    left: AtomicU32,
}

impl FromStr for AbortAt {
    type Err = String;

    /// Reads `<moment>:<n>`.
    fn from_str(text: &str) -> Result<Self, String> {
        let known = || {
            format!(
                "expected one of {} and a count, as in `in-pull:1`",
                MOMENTS.join(", ")
            )
        };
        let (moment, count) = text.split_once(':').ok_or_else(known)?;
        let count: u32 = count.parse().map_err(|_| known())?;
        if !MOMENTS.contains(&moment) || count == 0 {
            return Err(known());
        }
        Ok(AbortAt {
            moment: moment.to_owned(),
            left: AtomicU32::new(count),
        })
    }
}

impl AbortAt {
    /// Says that `moment` has come.
    pub(crate) fn reached(&self, moment: &str) {
        if moment != self.moment {
            return;
        }
        let count_down = |left: u32| left.checked_sub(1);
        let before = self
            .left
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, count_down);
        if before == Ok(1) {
            tracing::warn!("killing this process at `{moment}`, as a test asked for");
            // SIGKILL, not abort: nothing of ours may run any more.
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
