//! Rate limits of requests (docs/spec/cloud.md#http-rules).

mod attempts;

use governor::clock::{Clock, DefaultClock};
use governor::{DefaultKeyedRateLimiter, RateLimiter};

use self::attempts::whole_seconds;
pub use self::attempts::{Account, Attempts, Network, Quota};
use crate::configuration::Limits;

/// Whom requests are counted for.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum RateLimitKey {
    /// An actor with a credential.
    Actor(i64),
    /// Any other caller, by network.
    Network(Network),
}

/// Rate limits of requests.
pub struct RateLimits {
    requests: DefaultKeyedRateLimiter<RateLimitKey>,
    pub attempts: Attempts,
    clock: DefaultClock,
}

impl RateLimits {
    pub fn new(limits: &Limits) -> Self {
        RateLimits {
            requests: RateLimiter::keyed(governor::Quota::per_minute(limits.requests_per_minute)),
            attempts: Attempts::new(limits),
            clock: DefaultClock::default(),
        }
    }

    /// Counts a request.
    ///
    /// # Errors
    /// The seconds until the next request is accepted.
    pub fn request(&self, payer: &RateLimitKey) -> Result<(), u64> {
        self.requests
            .check_key(payer)
            .map_err(|until| whole_seconds(until.wait_time_from(self.clock.now())))
    }

    /// Removes the counters of callers that made no request for a while.
    pub fn tidy(&self) {
        self.requests.retain_recent();
        self.requests.shrink_to_fit();
        self.attempts.tidy();
    }
}
