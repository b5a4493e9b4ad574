//! What devices ask of the cloud, and what it does for them in between (docs/spec/cloud.md#devices).
//!
//! ```text
//! register    a device is made
//! state       what it should run: one statement, remembered until something changes that it is made from
//! heartbeat   who polls is online; who stops is not, after a while
//! report      what it says of itself; written where it differs
//! tags        labels that it gives itself
//! logs        lines of its services, kept and passed on
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

/// Starts what goes on by itself, until the program ends.
pub(crate) fn start(server: &ServerState) {
    let stop = &server.cloud.stop;
    tokio::spawn(heartbeat::noting(server.clone(), stop.clone()));
    tokio::spawn(heartbeat::expiring(server.cloud.clone(), stop.clone()));
    logs::start(server);
}

/// The value of a parameter of a query.
pub(crate) fn parameter(parts: &Parts, parameter_name: &str) -> Option<String> {
    let query = parts.uri.query()?;
    form_urlencoded::parse(query.as_bytes())
        .find(|(name, _)| name == parameter_name)
        .map(|(_, value)| value.into_owned())
}
