//! Lines that the services of devices write: taken, kept for a while, read back and followed (cloud behaviour
//! 4.5).
//!
//! ```text
//! ingest  a batch,                    ┐            ┌ table   of the database, for one replica
//! upload  a stream that stays open    ┴─> history ─┤
//! read    history, then live  <───────────────────┘ stream  of the server between several
//! ```
//!
//! What is answered with success is kept. Nobody who reads slowly holds up who writes: they are told how many
//! lines they missed.

mod history;
pub(crate) mod ingest;
pub(crate) mod line;
mod line_limits;
mod live;
pub(crate) mod read;
mod stream;
mod table;
pub(crate) mod upload;

use std::net::IpAddr;
use std::num::NonZeroU32;
use std::time::Duration;

use data::DeviceGone;
use governor::{DefaultKeyedRateLimiter, Quota, RateLimiter};
use http::{StatusCode, header};
use tokio::time::interval;
use tokio_util::sync::CancellationToken;

use axum::response::{IntoResponse, Response};

use crate::answer::Refusal;
use crate::bounds::LATE_ANSWERS;
use crate::bus::Bus;
use crate::cloud::{Cloud, Shared};
use crate::concurrency::ConcurrencyLimit;
use crate::configuration::Configuration;
use crate::limits::Network;
use history::History;
use line_limits::LineLimits;
use upload::open::Uploads;

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
/// Between two looks at who sent nothing for a while.
const TIDY: Duration = Duration::from_secs(60);

/// What is kept in memory for logs.
pub(crate) struct Logs {
    history: History,
    batches: DefaultKeyedRateLimiter<i64>,
    lines: LineLimits,
    /// Requests of devices that are gone, by network.
    late: ConcurrencyLimit<Network>,
    /// The streams that devices have open.
    uploads: Uploads,
}

impl Logs {
    pub(crate) fn new(configuration: &Configuration, bus: &Bus) -> Self {
        let each = BATCHES_WITHIN / BATCHES.get();
        let batches = Quota::with_period(each).unwrap_or(Quota::per_second(NonZeroU32::MIN));
        Logs {
            history: History::new(bus.nats().map(|nats| (nats, &configuration.nats))),
            batches: RateLimiter::keyed(batches.allow_burst(BATCHES)),
            lines: LineLimits::default(),
            late: ConcurrencyLimit::new(LATE_ANSWERS),
            uploads: Uploads::default(),
        }
    }

    /// These devices are no more.
    pub(super) fn heed(&self, gone: &[DeviceGone]) {
        // Of the table, the database takes their lines away by itself.
        if let Some(stream) = self.history.stream() {
            stream.heed(gone);
        }
    }

    /// Forgets devices that sent nothing for a while.
    fn tidy(&self) {
        self.batches.retain_recent();
        self.batches.shrink_to_fit();
        self.lines.tidy();
    }
}

/// Starts what goes on by itself, until `stop`; what waits to be kept is kept until the program ends.
pub(super) fn start(cloud: &Shared, stop: &CancellationToken) {
    let writing = cloud.clone();
    tokio::spawn(async move {
        if let Some(table) = writing.devices.logs.history.table() {
            table::writing(writing.clone(), table).await;
        }
    });
    let (keeping, stopped) = (cloud.clone(), stop.clone());
    tokio::spawn(async move {
        match &keeping.devices.logs.history {
            History::Table(table) => table::tidying(&keeping, table, &stopped).await,
            History::Stream(stream) => stream.run(keeping.clone(), stopped).await,
        }
    });
    let (tidying, stopped) = (cloud.clone(), stop.clone());
    tokio::spawn(async move {
        let mut times = interval(TIDY);
        while stopped.run_until_cancelled(times.tick()).await.is_some() {
            tidying.devices.logs.tidy();
        }
    });
}

/// The answer to a device that is gone, given late: its supervisor tries again at once. Where too many wait for it,
/// of the same address or at all, they are told how long to wait instead.
async fn gone(cloud: &Cloud, address: IpAddr) -> Refusal {
    let seconds = cloud.configuration.limits.gone_device_seconds;
    let Some(_waits) = cloud.devices.logs.late.enter(&Network::of(address), 1) else {
        return Refusal::TooMany(seconds.max(1));
    };
    let late = Duration::from_secs(seconds);
    let ending = &cloud.devices.ending;
    let _ = ending.run_until_cancelled(tokio::time::sleep(late)).await;
    Refusal::Unauthorized
}

/// 201 without a body.
fn taken() -> Response {
    (StatusCode::CREATED, [(header::CACHE_CONTROL, "no-cache")]).into_response()
}
