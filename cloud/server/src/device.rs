//! What devices ask of the cloud, and what it does for them in between (docs/spec/cloud.md#devices).
//!
//! ```text
//! register    a device is made
//! state       what it should run: one statement, remembered until something changes that it is made from
//! heartbeat   who polls is online; who stops is not, after a while
//! report      what it says of itself; written where it differs
//! tags        labels that it gives itself
//! logs        lines of its services, kept and passed on
//! ```
//!
//! Nothing here reaches a device: the tunnel and the proxy do.

pub(crate) mod device_ref;
pub(crate) mod devices;
pub(crate) mod heartbeat;
pub(crate) mod logs;
pub(crate) mod minute_throttle;
pub(crate) mod register;
pub(crate) mod report;
pub(crate) mod state;
pub(crate) mod tags;

use data::{DataError, SystemPurpose};
use http::request::Parts;

pub(crate) use device_ref::DeviceRef;

use crate::cloud::Cloud;
use crate::state::ServerState;

/// Starts what goes on by itself, until the program ends.
pub(crate) fn start(server: &ServerState) {
    let stop = &server.cloud.stop;
    tokio::spawn(heartbeat::noting(server.clone(), stop.clone()));
    tokio::spawn(heartbeat::expiring(server.cloud.clone(), stop.clone()));
    logs::start(server);
}

impl Cloud {
    /// The device of a uuid, where there is (still) one.
    ///
    /// # Errors
    /// Where the database fails.
    pub(crate) async fn device(&self, uuid: &str) -> Result<Option<DeviceRef>, DataError> {
        if !is_uuid(uuid) {
            return Ok(None);
        }
        let select = SystemPurpose::Lookup
            .sql("SELECT id, actor FROM device WHERE uuid = ?")
            .with(uuid);
        let row = self.database.row(&select).await?;
        row.as_ref().map(DeviceRef::read).transpose()
    }
}

/// Whether this can be the uuid of a device at all (docs/spec/cloud.md#rule-device-fields).
pub(crate) fn is_uuid(text: &str) -> bool {
    matches!(text.len(), 32 | 62)
        && text
            .bytes()
            .all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

/// The value of a parameter of a query.
pub(crate) fn parameter(parts: &Parts, wanted: &str) -> Option<String> {
    let query = parts.uri.query()?;
    form_urlencoded::parse(query.as_bytes())
        .find(|(name, _)| name == wanted)
        .map(|(_, value)| value.into_owned())
}
