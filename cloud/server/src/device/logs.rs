//! Log lines of the services of devices: accepted, stored for a while, read back and followed
//! (docs/spec/cloud.md#device-logs).
//!
//! ```text
//! ingest  a batch
//! upload  a stream that stays open
//! read    history, then live
//! ```
//!
//! Lines are stored before their request is answered with success. Slow readers do not delay writers: they are informed
//! how many lines they missed.

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

/// Interval between removals of devices that sent nothing for a while.
const TIDY: Duration = Duration::from_secs(60);

/// Starts the background tasks, until the program ends.
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

/// Answers a deleted device after a delay: its supervisor retries at once. If too many requests wait for that, of the
/// same address or in total, the answer states how long to wait instead.
async fn gone(server: &Server, address: IpAddr) -> Refusal {
    let seconds = server.cloud.configuration.limits.gone_device_seconds;
    let Some(_waits) = server
        .devices
        .logs
        .late
        .enter(&Network::from_address(address), 1)
    else {
        return Refusal::TooMany(seconds.max(1));
    };
    let late = Duration::from_secs(seconds);
    let stop = &server.cloud.stop;
    let _ = stop.run_until_cancelled(tokio::time::sleep(late)).await;
    Refusal::Unauthorized
}

/// Returns 201 without a body.
fn acknowledgement() -> Response {
    (StatusCode::CREATED, [(header::CACHE_CONTROL, "no-cache")]).into_response()
}
