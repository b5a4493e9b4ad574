//! What devices ask of the cloud, and what it does for them in between (cloud behaviour 4).
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

pub(crate) mod heartbeat;
pub(crate) mod logs;
pub(crate) mod register;
pub(crate) mod report;
pub(crate) mod state;
pub(crate) mod tags;

use std::sync::Arc;

use data::{DataError, Effect, Row, SystemPurpose};
use http::request::Parts;
use resources::Role;
use tokio_util::sync::CancellationToken;

use crate::answer::Refusal;
use crate::bus::Bus;
use crate::cloud::{Cloud, Shared};
use crate::configuration::Configuration;
use crate::credential::Identity;

/// What is kept in memory for devices. Every replica may lose its own at any time.
pub(crate) struct Devices {
    pub(crate) states: state::States,
    pub(crate) heartbeats: heartbeat::Heartbeats,
    /// Measurements that were written.
    pub(crate) metrics: report::OnceAMinute,
    /// Reports that were refused.
    pub(crate) refused: report::OnceAMinute,
    pub(crate) logs: logs::Logs,
    /// The program ends: streams end with it.
    pub(crate) ending: CancellationToken,
}

impl Devices {
    pub(crate) fn new(configuration: &Configuration, bus: &Bus) -> Self {
        Devices {
            states: state::States::default(),
            heartbeats: heartbeat::Heartbeats::default(),
            metrics: report::OnceAMinute::default(),
            refused: report::OnceAMinute::default(),
            logs: logs::Logs::new(configuration, bus),
            ending: CancellationToken::new(),
        }
    }

    /// Learns of what was changed. (What devices should run is looked at with each poll.)
    pub(crate) fn heed(&self, effects: &[Effect]) {
        for effect in effects {
            if let Effect::DevicesGone(gone) = effect {
                self.logs.heed(gone);
                for gone in gone {
                    self.states.forget(&gone.uuid);
                    self.metrics.forget(gone.id);
                    self.refused.forget(gone.id);
                }
            }
        }
    }
}

/// Starts what goes on by itself, until `stop`.
pub(crate) fn start(cloud: &Shared, stop: &CancellationToken) {
    let ending = cloud.clone();
    let stopped = stop.clone();
    tokio::spawn(async move {
        stopped.cancelled().await;
        ending.devices.ending.cancel();
    });
    tokio::spawn(heartbeat::noting(Arc::clone(cloud), stop.clone()));
    tokio::spawn(heartbeat::expiring(Arc::clone(cloud), stop.clone()));
    logs::start(cloud, stop);
}

/// A device, as endpoints that name it by its uuid need it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Known {
    pub(crate) id: i64,
    pub(crate) actor: i64,
}

impl Known {
    fn read(row: &Row) -> Result<Self, DataError> {
        Ok(Known {
            id: row.id(0)?,
            actor: row.id(1)?,
        })
    }

    /// Whether a credential is a key of this very device.
    pub(crate) fn is_own_key(&self, identity: &Identity) -> bool {
        identity.is_key()
            && identity.role() == Role::DeviceKey
            && identity.actor() == Some(self.actor)
    }
}

impl Cloud {
    /// The device of a uuid, where there is (still) one.
    ///
    /// # Errors
    /// Where the database fails.
    pub(crate) async fn device(&self, uuid: &str) -> Result<Option<Known>, DataError> {
        if !is_uuid(uuid) {
            return Ok(None);
        }
        let select = SystemPurpose::Lookup
            .sql("SELECT id, actor FROM device WHERE uuid = ?")
            .with(uuid);
        let row = self.database.row(&select).await?;
        row.as_ref().map(Known::read).transpose()
    }

    /// As [`Cloud::admit`], for endpoints that are for keys alone.
    ///
    /// # Errors
    /// 401 and 429.
    pub(crate) async fn admit_key(&self, parts: &Parts) -> Result<Identity, Refusal> {
        let identity = self.admit(parts).await?;
        match identity.is_key() {
            true => Ok(identity),
            false => Err(Refusal::Unauthorized),
        }
    }
}

/// Whether this can be the uuid of a device at all (cloud behaviour 5.11).
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
