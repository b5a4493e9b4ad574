//! Lines that the services of devices write: taken, kept for a while, read back and followed (cloud behaviour
//! 4.5).
//!
//! ```text
//! ingest  a batch, or a stream that stays open ──> writer  one transaction for all devices' lines
//! read    history, then live  <────────────────── bus     whoever follows a device
//! ```
//!
//! What is answered with success is kept. Nobody who reads slowly holds up who writes: they are told how many
//! lines they missed.

pub(crate) mod bus;
pub(crate) mod ingest;
pub(crate) mod line;
pub(crate) mod read;
pub(crate) mod upload;
pub(crate) mod writer;

use std::num::NonZeroU32;
use std::time::Duration;

use governor::{DefaultKeyedRateLimiter, Quota, RateLimiter};
use http::{StatusCode, header};

use axum::response::{IntoResponse, Response};

use crate::answer::Refusal;
use crate::cloud::Cloud;
use crate::configuration::Limits;
use bus::Bus;
use writer::Queue;

/// Lines of a device that are kept at most.
pub(crate) const KEPT: usize = 1000;
/// For how long, in milliseconds.
pub(crate) const KEPT_FOR: i64 = 30 * 24 * 3600 * 1000;

/// Batches of one device in [`BATCHES_WITHIN`].
const BATCHES: NonZeroU32 = match NonZeroU32::new(15) {
    Some(number) => number,
    None => NonZeroU32::MIN,
};
const BATCHES_WITHIN: Duration = Duration::from_secs(10);
/// How many seconds' worth of lines a device may send at once.
const BURST: u32 = 10;

/// What is kept in memory for logs.
pub(crate) struct Logs {
    pub(crate) bus: Bus,
    pub(crate) queue: Queue,
    batches: DefaultKeyedRateLimiter<i64>,
    lines: DefaultKeyedRateLimiter<i64>,
}

impl Logs {
    pub(crate) fn new(limits: &Limits) -> Self {
        let each = BATCHES_WITHIN / BATCHES.get();
        let batches = Quota::with_period(each).unwrap_or(Quota::per_second(NonZeroU32::MIN));
        let second = limits.log_lines_per_second;
        let burst = second.saturating_mul(NonZeroU32::MIN.saturating_add(BURST - 1));
        Logs {
            bus: Bus::default(),
            queue: Queue::default(),
            batches: RateLimiter::keyed(batches.allow_burst(BATCHES)),
            lines: RateLimiter::keyed(Quota::per_second(second).allow_burst(burst)),
        }
    }

    /// Forgets devices that sent nothing for a while.
    pub(crate) fn tidy(&self) {
        self.batches.retain_recent();
        self.batches.shrink_to_fit();
        self.lines.retain_recent();
        self.lines.shrink_to_fit();
    }
}

/// The answer to a device that is gone, given late: its supervisor tries again at once.
async fn gone(cloud: &Cloud) -> Refusal {
    let late = Duration::from_secs(cloud.configuration.limits.gone_device_seconds);
    let ending = &cloud.devices.ending;
    let _ = ending.run_until_cancelled(tokio::time::sleep(late)).await;
    Refusal::Unauthorized
}

/// 201 without a body.
fn taken() -> Response {
    (StatusCode::CREATED, [(header::CACHE_CONTROL, "no-cache")]).into_response()
}
