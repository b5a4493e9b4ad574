//! How long to wait before a service that ended is started again.

use std::time::Duration;

use model::{Backoff, RestartPolicy};

/// The first wait; it doubles with each further one.
const FIRST: Duration = Duration::from_millis(100);
/// The longest wait.
const LONGEST: Duration = Duration::from_secs(60);
/// A run of at least this long was a good one: after it the waits start again from the first.
const GOOD_RUN: Duration = Duration::from_secs(10);

/// The waits of one service between its runs.
#[derive(Debug, Clone)]
pub struct RestartBackoff(Backoff);

impl Default for RestartBackoff {
    fn default() -> Self {
        RestartBackoff(Backoff::new(FIRST))
    }
}

impl RestartBackoff {
    /// Returns the wait after a run that took `ran`.
    pub fn after(&mut self, ran: Duration) -> Duration {
        if ran >= GOOD_RUN {
            self.0.reset();
        }
        self.0.next_wait(LONGEST)
    }
}

/// Whether a service that ended by itself is started again.
#[must_use]
pub fn starts_again(policy: RestartPolicy, exit_code: i64) -> bool {
    match policy {
        RestartPolicy::No => false,
        RestartPolicy::OnFailure => exit_code != 0,
        RestartPolicy::Always | RestartPolicy::UnlessStopped => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_a_minute_and_are_reset_after_a_good_run() {
        let mut backoff = RestartBackoff::default();
        let short = Duration::from_millis(1);
        let waits: Vec<u128> = (0..12).map(|_| backoff.after(short).as_millis()).collect();
        assert_eq!(
            waits,
            [
                100, 200, 400, 800, 1600, 3200, 6400, 12800, 25600, 51200, 60000, 60000
            ]
        );
        assert_eq!(backoff.after(GOOD_RUN), FIRST);
        assert_eq!(backoff.after(short), FIRST * 2);
    }

    #[test]
    fn policies_decide_by_the_exit_code() {
        for (policy, after_success, after_failure) in [
            (RestartPolicy::No, false, false),
            (RestartPolicy::OnFailure, false, true),
            (RestartPolicy::Always, true, true),
            (RestartPolicy::UnlessStopped, true, true),
        ] {
            assert_eq!(starts_again(policy, 0), after_success, "{policy:?}");
            assert_eq!(starts_again(policy, 1), after_failure, "{policy:?}");
        }
    }
}
