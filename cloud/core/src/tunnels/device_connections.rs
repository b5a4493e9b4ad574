//! The devices that are connected to this replica.

use std::collections::HashSet;
use std::net::SocketAddr;
use std::num::NonZeroU32;

use data::write::Environment;
use data::{DataError, Database, Effect, RowRight};
use tokio::sync::Notify;

use super::open::OpenTunnels;
use super::presence_changes::PresenceChanges;
use super::push_queue::PushQueue;
use crate::bus::Bus;
use crate::configuration::{Configuration, ReachSettings};

/// The devices that can be reached from this replica.
pub struct DeviceConnections {
    pub(super) database: Database,
    pub(super) bus: Bus,
    pub(super) environment: Environment,
    pub(super) settings: ReachSettings,
    /// Devices that are notified per second.
    pub(super) pushes_per_second: NonZeroU32,
    /// The address that this replica listens on.
    pub(super) listen: SocketAddr,
    pub(super) open: OpenTunnels,
    pub(super) presence: PresenceChanges,
    pub(super) push: PushQueue,
    pub(super) recheck: Notify,
}

impl DeviceConnections {
    /// Creates an empty set of connections with the settings of the configuration.
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
            presence: PresenceChanges::default(),
            push: PushQueue::default(),
            recheck: Notify::new(),
        }
    }

    /// Handles unknown changes: devices are notified, and tunnels that are no longer permitted end after a while.
    pub fn invalidate_all(&self) {
        self.push.perhaps(self.open.all());
        self.recheck.notify_one();
    }

    /// Handles a tunnel that a device opened at another replica, at this time: an older one here is broken, or will be.
    pub fn arrived_elsewhere(&self, device: i64, at: i64) {
        self.open.end_older(device, at);
    }

    /// Handles changes: devices are notified, and tunnels that are no longer permitted end.
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
                // A device whose key is still valid reconnects at once.
                Effect::ActorsChanged(actors) => self.open.end_of(actors),
                Effect::ImagesGone(_) => {}
            }
        }
    }
}

/// Returns those of the devices that are connected to any replica, in the given order.
///
/// # Errors
/// If the database fails.
pub(super) async fn connected(
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
            elsewhere.extend(connections.database.ids(&select).await?);
        }
    }
    devices.retain(|right| elsewhere.contains(&right.id()) || tunnels.has(right.id()));
    Ok(devices)
}
