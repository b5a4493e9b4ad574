//! Lines that the services of devices write: taken, kept for a while, read back and followed
//! (docs/spec/cloud.md#device-logs).
//!
//! ```text
//! ingest  a batch
//! upload  a stream that stays open
//! read    history, then live
//! ```
//!
//! What is answered with success is kept. Nobody who reads slowly holds up who writes: they are told how many
//! lines they missed.

pub(crate) mod ingest;
pub(crate) mod limits;
mod line_limits;
pub(crate) mod read;
pub(crate) mod upload;

use std::net::IpAddr;
use std::time::Duration;

use cloud_core::answer::Refusal;
use cloud_core::limits::Network;
use cloud_core::logs;
use http::{StatusCode, header};
use tokio::time::interval;

use axum::response::{IntoResponse, Response};

use crate::state::{Server, ServerState};

/// Between two looks at who sent nothing for a while.
const TIDY: Duration = Duration::from_secs(60);

/// Starts what goes on by itself, until the program ends.
pub(super) fn start(server: &ServerState) {
    tokio::spawn(logs::write(server.cloud.clone()));
    tokio::spawn(logs::maintain(server.cloud.clone()));
    let server = server.clone();
    tokio::spawn(async move {
        let mut times = interval(TIDY);
        let stop = &server.cloud.stop;
        while stop.run_until_cancelled(times.tick()).await.is_some() {
            server.devices.logs.tidy();
        }
    });
}

/// The answer to a device that is gone, given late: its supervisor tries again at once. Where too many wait for it,
/// of the same address or at all, they are told how long to wait instead.
async fn gone(server: &Server, address: IpAddr) -> Refusal {
    let seconds = server.cloud.configuration.limits.gone_device_seconds;
    let Some(_waits) = server.devices.logs.late.enter(&Network::of(address), 1) else {
        return Refusal::TooMany(seconds.max(1));
    };
    let late = Duration::from_secs(seconds);
    let stop = &server.cloud.stop;
    let _ = stop.run_until_cancelled(tokio::time::sleep(late)).await;
    Refusal::Unauthorized
}

/// 201 without a body.
fn taken() -> Response {
    (StatusCode::CREATED, [(header::CACHE_CONTROL, "no-cache")]).into_response()
}
