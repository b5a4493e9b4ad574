//! How the cloud reaches devices (docs/spec/cloud.md#supervisor-proxy, docs/spec/cloud.md#device-online).
//!
//! ```text
//! device ── GET /device/v3/:uuid/tunnel ──► tunnel ──► open (the map of tunnels)
//!                                                       │
//! POST /supervisor/… ──► proxy ── ask ──────────────────┤
//!                                  └─ bus: the replica that has the tunnel, where it is another one
//! effects of writes  ──► push  ── ask: /v1/update ──────┤
//!                                                       └─► presence ──► database, a batch at a time
//! ```
//!
//! A tunnel is where its device is: the rows in the database follow the map, and never the other way round.

pub mod device_request;
mod open;
mod presence;
pub mod proxy;
mod push;
mod recheck;
pub mod tunnel;

use std::collections::HashSet;
use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::sync::Arc;

use data::write::Environment;
use data::{DataError, Database, Effect, RowRight, SystemPurpose};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::bus::Bus;
use crate::configuration::{Configuration, ReachSettings};
use open::OpenTunnels;
pub use open::Opener;
use presence::Presence;
use push::Push;

/// The devices that are reached from here.
pub struct DeviceConnections {
    database: Database,
    bus: Bus,
    environment: Environment,
    settings: ReachSettings,
    /// Devices that are notified in a second.
    pushes_per_second: NonZeroU32,
    /// Where this replica listens.
    listen: SocketAddr,
    open: OpenTunnels,
    presence: Presence,
    push: Push,
    recheck: Notify,
}

impl DeviceConnections {
    /// None yet, as the configuration has it.
    pub fn new(
        configuration: &Configuration,
        database: &Database,
        bus: &Bus,
        environment: &Environment,
    ) -> Self {
        DeviceConnections {
            database: database.clone(),
            bus: bus.clone(),
            environment: environment.clone(),
            settings: configuration.reach,
            pushes_per_second: configuration.limits.pushes_per_second,
            listen: configuration.listen,
            open: OpenTunnels::default(),
            presence: Presence::default(),
            push: Push::default(),
            recheck: Notify::new(),
        }
    }

    /// Anything may have been changed: devices are told, and what is no longer permitted ends, in a while.
    pub fn invalidate_all(&self) {
        self.push.perhaps(self.open.all());
        self.recheck.notify_one();
    }

    /// A device opened a tunnel at another replica, at this time: an older one here is broken, or will be.
    pub fn arrived_elsewhere(&self, device: i64, at: i64) {
        self.open.end_older(device, at);
    }

    /// Something was changed: devices are told, and what is no longer permitted ends.
    pub fn invalidate(&self, effects: &[Effect]) {
        for effect in effects {
            match effect {
                Effect::DevicesChanged(devices) => self.push.devices(devices),
                Effect::FleetsChanged(fleets) => self.push.fleets(fleets),
                Effect::DevicesGone(gone) => {
                    for device in gone {
                        self.open.end_of_removed(device.id);
                    }
                }
                // A device whose key is still good comes back at once.
                Effect::ActorsChanged(actors) => self.open.end_of(actors),
                Effect::ImagesGone(_) => {}
            }
        }
    }
}

/// Which of these devices are connected to any replica, in their order.
///
/// # Errors
/// Where the database fails.
async fn connected(
    connections: &DeviceConnections,
    mut devices: Vec<RowRight>,
) -> Result<Vec<RowRight>, DataError> {
    const AT_ONCE: usize = 1000;
    let tunnels = &connections.open;
    let mut elsewhere = HashSet::new();
    if connections.bus.has_others() {
        let away: Vec<RowRight> = devices
            .iter()
            .copied()
            .filter(|right| !tunnels.has(right.id()))
            .collect();
        for away in away.chunks(AT_ONCE) {
            let select = RowRight::sql_of_all(
                away,
                "SELECT id FROM device WHERE id IN (?) AND is_connected_to_vpn = TRUE",
            );
            for row in connections.database.rows(&select).await? {
                elsewhere.insert(row.id(0)?);
            }
        }
    }
    devices.retain(|right| elsewhere.contains(&right.id()) || tunnels.has(right.id()));
    Ok(devices)
}

/// Keeps the database true and sends what is to be pushed, until `stop`; then nobody is connected any more.
///
/// # Errors
/// Where the database fails at the start.
pub async fn run(
    connections: Arc<DeviceConnections>,
    stop: CancellationToken,
) -> anyhow::Result<tokio::task::JoinHandle<()>> {
    let instance = presence::begin(&connections).await?;
    let newest = SystemPurpose::Push.sql("SELECT coalesce(max(id), 0) FROM device");
    if let Some(row) = connections.database.row(&newest).await? {
        connections.push.begin(row.id(0)?);
    }
    tokio::spawn(
        stop.clone()
            .run_until_cancelled_owned(push::run(connections.clone())),
    );
    tokio::spawn(
        stop.clone()
            .run_until_cancelled_owned(recheck::run(connections.clone())),
    );
    Ok(tokio::spawn(presence::run(connections, instance, stop)))
}
