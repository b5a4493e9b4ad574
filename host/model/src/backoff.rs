//! Waits between attempts that fail.

use std::time::Duration;

/// The waits after consecutive failures, each twice as long as the previous one.
#[derive(Debug, Clone)]
pub struct Backoff {
    first: Duration,
    failures: u32,
}

impl Backoff {
    /// Waits for `first` after the first failure.
    #[must_use]
    pub const fn new(first: Duration) -> Self {
        Backoff::from_failures(first, 0)
    }

    /// Continues after this many failures, of which the first had the wait `first`.
    #[must_use]
    pub const fn from_failures(first: Duration, failures: u32) -> Self {
        Backoff { first, failures }
    }

    /// Returns the number of failures since the last success.
    #[must_use]
    pub const fn failures(&self) -> u32 {
        self.failures
    }

    /// Counts a failure, and returns the wait after it, at most `longest`.
    pub fn next_wait(&mut self, longest: Duration) -> Duration {
        let factor = 2_u32.saturating_pow(self.failures);
        self.failures = self.failures.saturating_add(1);
        self.first.saturating_mul(factor).min(longest)
    }

    /// Begins again, after a success.
    pub fn reset(&mut self) {
        self.failures = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_the_longest_and_are_reset_after_a_success() {
        let second = Duration::from_secs(1);
        let mut backoff = Backoff::new(second);
        let waits: Vec<u64> = (0..6)
            .map(|_| backoff.next_wait(20 * second).as_secs())
            .collect();
        assert_eq!(waits, [1, 2, 4, 8, 16, 20]);
        assert_eq!(backoff.failures(), 6);
        backoff.reset();
        assert_eq!(backoff.next_wait(20 * second), second);
        let mut many = Backoff::from_failures(second, u32::MAX);
        assert_eq!(many.next_wait(20 * second), 20 * second);
        assert_eq!(many.failures(), u32::MAX);
    }
}
