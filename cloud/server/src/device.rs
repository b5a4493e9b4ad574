//! Requests of devices to the cloud, and what the cloud does for devices in between (docs/spec/cloud.md#devices).
//!
//! ```text
//! register    creates a device
//! state       what it should run: one statement, cached until one of its sources changes
//! heartbeat   a device that polls is online; some time after its last poll it is not
//! report      the device's report about itself; only differences are written
//! tags        labels that the device sets itself
//! logs        lines of its services, stored and passed on
//! tunnel      the connection on which the cloud reaches it
//! ```

pub(crate) mod devices;
pub(crate) mod heartbeat;
pub(crate) mod logs;
pub(crate) mod minute_throttle;
pub(crate) mod register;
pub(crate) mod report;
pub(crate) mod state;
pub(crate) mod tags;
pub(crate) mod tunnel;

use http::request::Parts;

use crate::state::ServerState;

/// Starts the background tasks, until the program ends.
pub(crate) fn start(server: &ServerState) {
    let stop = &server.cloud.stop;
    tokio::spawn(heartbeat::noting(server.clone(), stop.clone()));
    tokio::spawn(heartbeat::expiring(server.cloud.clone(), stop.clone()));
    logs::start(server);
}

/// Returns the value of a query parameter.
pub(crate) fn parameter(parts: &Parts, parameter_name: &str) -> Option<String> {
    let query = parts.uri.query()?;
    form_urlencoded::parse(query.as_bytes())
        .find(|(name, _)| name == parameter_name)
        .map(|(_, value)| value.into_owned())
}
