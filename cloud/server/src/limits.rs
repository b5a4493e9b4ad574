//! How often somebody may ask (cloud behaviour 3.3).

use std::collections::HashMap;
use std::net::IpAddr;
use std::num::NonZeroU32;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use governor::clock::{Clock, DefaultClock};
use governor::{DefaultKeyedRateLimiter, Quota, RateLimiter};

use crate::configuration::Limits;

/// Whom requests are counted for.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Payer {
    /// An actor with a credential.
    Actor(i64),
    /// Anybody else, by the address.
    Address(IpAddr),
}

/// Names and addresses whose sign-ins are remembered.
const MOST: usize = 100_000;

/// A name is as long as the sender likes; what is kept of it is not.
fn kept(name: &str) -> String {
    name.chars()
        .take(100)
        .flat_map(char::to_lowercase)
        .collect()
}

/// How often somebody may ask.
pub(crate) struct RateLimits {
    requests: DefaultKeyedRateLimiter<Payer>,
    logins: DefaultKeyedRateLimiter<(String, IpAddr, u32)>,
    /// How often a name signed in from an address: what was counted before the last time counts no more.
    passed: Mutex<HashMap<(String, IpAddr), u32>>,
    clock: DefaultClock,
}

impl RateLimits {
    pub(crate) fn of(limits: &Limits) -> Self {
        let minutes = Duration::from_secs(60) * limits.failed_logins_minutes.get();
        let each = minutes / limits.failed_logins.get();
        let logins = Quota::with_period(each)
            .unwrap_or(Quota::per_minute(NonZeroU32::MIN))
            .allow_burst(limits.failed_logins);
        RateLimits {
            requests: RateLimiter::keyed(Quota::per_minute(limits.requests_per_minute)),
            logins: RateLimiter::keyed(logins),
            passed: Mutex::default(),
            clock: DefaultClock::default(),
        }
    }

    /// Counts a request.
    ///
    /// # Errors
    /// In how many seconds the next one is taken.
    pub(crate) fn request(&self, payer: &Payer) -> Result<(), u64> {
        self.requests
            .check_key(payer)
            .map_err(|until| self.seconds(until.wait_time_from(self.clock.now())))
    }

    /// Counts a sign-in by this name from this address.
    ///
    /// # Errors
    /// In how many seconds the next one is taken.
    pub(crate) fn login(&self, name: &str, from: IpAddr) -> Result<(), u64> {
        let name = kept(name);
        let passed = self.passed.lock().unwrap_or_else(PoisonError::into_inner);
        let times = passed
            .get(&(name.clone(), from))
            .copied()
            .unwrap_or_default();
        drop(passed);
        self.logins
            .check_key(&(name, from, times))
            .map_err(|until| self.seconds(until.wait_time_from(self.clock.now())))
    }

    /// The sign-in was right: what was counted before it is forgotten.
    pub(crate) fn login_passed(&self, name: &str, from: IpAddr) {
        let mut passed = self.passed.lock().unwrap_or_else(PoisonError::into_inner);
        if passed.len() >= MOST {
            passed.clear();
        }
        let times = passed.entry((kept(name), from)).or_default();
        *times = times.wrapping_add(1);
    }

    /// Forgets whoever has not asked for a while.
    pub(crate) fn tidy(&self) {
        self.requests.retain_recent();
        self.requests.shrink_to_fit();
        self.logins.retain_recent();
        self.logins.shrink_to_fit();
    }

    fn seconds(&self, wait: Duration) -> u64 {
        (wait.as_secs() + u64::from(wait.subsec_nanos() > 0)).max(1)
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    #[test]
    fn sign_ins_that_fail_are_refused_after_some_and_one_that_is_right_starts_the_count_anew() {
        let limits = RateLimits::of(&Limits::default());
        let from = IpAddr::V4(Ipv4Addr::LOCALHOST);
        for _ in 0..9 {
            assert_eq!(limits.login("Ann", from), Ok(()));
        }
        limits.login_passed("ann", from);
        for _ in 0..10 {
            assert_eq!(limits.login("ann", from), Ok(()));
        }
        let wait = limits.login("ANN", from).expect_err("refused");
        assert!((1..=360).contains(&wait), "{wait}");
        assert_eq!(limits.login("bob", from), Ok(()), "somebody else");
        let elsewhere = IpAddr::V4(Ipv4Addr::new(127, 0, 0, 2));
        assert_eq!(limits.login("ann", elsewhere), Ok(()), "from elsewhere");
    }
}
