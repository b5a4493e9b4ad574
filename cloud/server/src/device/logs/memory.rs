//! What a replica keeps in memory for logs.

use std::num::NonZeroU32;
use std::time::Duration;

use data::DeviceGone;
use governor::{DefaultKeyedRateLimiter, Quota, RateLimiter};

use super::history::History;
use super::line_limits::LineLimits;
use super::upload::open::Uploads;
use crate::bounds::LATE_ANSWERS;
use crate::bus::Bus;
use crate::concurrency::ConcurrencyLimit;
use crate::configuration::Configuration;
use crate::limits::Network;

/// Batches of one device in [`BATCHES_WITHIN`].
const BATCHES: NonZeroU32 = match NonZeroU32::new(15) {
    Some(number) => number,
    None => NonZeroU32::MIN,
};
const BATCHES_WITHIN: Duration = Duration::from_secs(10);
/// What is kept in memory for logs.
pub(crate) struct Logs {
    pub(super) history: History,
    pub(super) batches: DefaultKeyedRateLimiter<i64>,
    pub(super) lines: LineLimits,
    /// Requests of devices that are gone, by network.
    pub(super) late: ConcurrencyLimit<Network>,
    /// The streams that devices have open.
    pub(super) uploads: Uploads,
}

impl Logs {
    pub(crate) fn new(configuration: &Configuration, bus: &Bus) -> Self {
        let each = BATCHES_WITHIN / BATCHES.get();
        let batches = Quota::with_period(each).unwrap_or(Quota::per_second(NonZeroU32::MIN));
        Logs {
            history: History::new(bus, &configuration.nats),
            batches: RateLimiter::keyed(batches.allow_burst(BATCHES)),
            lines: LineLimits::default(),
            late: ConcurrencyLimit::new(LATE_ANSWERS),
            uploads: Uploads::default(),
        }
    }

    /// These devices are no more.
    pub(in crate::device) fn invalidate(&self, gone: &[DeviceGone]) {
        // Of the table, the database takes their lines away by itself.
        if let Some(stream) = self.history.stream() {
            stream.invalidate(gone);
        }
    }

    /// Forgets devices that sent nothing for a while.
    pub(super) fn tidy(&self) {
        self.batches.retain_recent();
        self.batches.shrink_to_fit();
        self.lines.tidy();
    }
}
