//! Limits on the logs that devices send.

use std::num::NonZeroU32;
use std::time::Duration;

use cloud_core::limits::Network;
use governor::{DefaultKeyedRateLimiter, Quota, RateLimiter};

use super::line_limits::LineLimits;
use super::upload::open::Uploads;
use crate::bounds::LATE_ANSWERS;
use cloud_core::concurrency::ConcurrencyLimit;

/// Maximum number of batches of one device in [`BATCHES_WITHIN`].
const BATCHES: NonZeroU32 = NonZeroU32::MIN.saturating_add(14);
const BATCHES_WITHIN: Duration = Duration::from_secs(10);

/// Limits on the logs that devices send.
pub(crate) struct LogLimits {
    pub(super) batches: DefaultKeyedRateLimiter<i64>,
    pub(super) lines: LineLimits,
    /// Requests of deleted devices, by network.
    pub(super) late: ConcurrencyLimit<Network>,
    /// The open streams of devices.
    pub(super) uploads: Uploads,
}

impl Default for LogLimits {
    fn default() -> Self {
        let each = BATCHES_WITHIN / BATCHES.get();
        let batches = Quota::with_period(each).unwrap_or(Quota::per_second(NonZeroU32::MIN));
        LogLimits {
            batches: RateLimiter::keyed(batches.allow_burst(BATCHES)),
            lines: LineLimits::default(),
            late: ConcurrencyLimit::new(LATE_ANSWERS),
            uploads: Uploads::default(),
        }
    }
}

impl LogLimits {
    /// Removes devices that sent nothing for a while.
    pub(super) fn tidy(&self) {
        self.batches.retain_recent();
        self.batches.shrink_to_fit();
        self.lines.tidy();
    }
}
