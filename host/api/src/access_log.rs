//! One line for each request: method, path, status and time taken. Never the query, which may hold a key.
//!
//! Requests that only read and succeed are logged at `debug`: a client that polls the state would
//! otherwise fill the journal of a device with it. All others are logged at `info`.

use std::time::Duration;

use http::{Method, StatusCode};

/// Writes the line of one request.
pub(crate) fn write(method: &Method, path: &str, status: StatusCode, time: Duration) {
    let quiet = matches!(*method, Method::GET | Method::HEAD) && status.is_success();
    let micros = u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
    let status = status.as_u16();
    if quiet {
        tracing::debug!(target: "access", status, micros, "{method} {path}");
    } else {
        tracing::info!(target: "access", status, micros, "{method} {path}");
    }
}

/// Whether a line for a request that reads and succeeds is written at all.
pub(crate) fn wants_reads() -> bool {
    tracing::enabled!(target: "access", tracing::Level::DEBUG)
}
