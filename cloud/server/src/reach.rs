//! How the cloud reaches devices (cloud behaviour 4.6 and 4.8).
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

pub(crate) mod ask;
mod open;
mod presence;
pub(crate) mod proxy;
mod push;
mod recheck;
pub(crate) mod tunnel;

use std::collections::HashSet;

use data::{DataError, Effect, RowRight, SystemPurpose};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::cloud::{Cloud, Shared};
use open::Tunnels;
use presence::Presence;
use push::Push;

/// The devices that are reached from here.
#[derive(Default)]
pub(crate) struct Reach {
    tunnels: Tunnels,
    presence: Presence,
    push: Push,
    recheck: Notify,
}

impl Reach {
    /// Anything may have been changed: devices are told, and what is no longer permitted ends, in a while.
    pub(crate) fn heed_anything(&self) {
        self.push.perhaps(self.tunnels.all());
        self.recheck.notify_one();
    }

    /// A device opened a tunnel at another replica, at this time: an older one here is broken, or will be.
    pub(crate) fn arrived_elsewhere(&self, device: i64, at: i64) {
        self.tunnels.end_older(device, at);
    }

    /// Something was changed: devices are told, and what is no longer permitted ends.
    pub(crate) fn heed(&self, effects: &[Effect]) {
        for effect in effects {
            match effect {
                Effect::DevicesChanged(devices) => self.push.devices(devices),
                Effect::FleetsChanged(fleets) => self.push.fleets(fleets),
                Effect::DevicesGone(gone) => {
                    for device in gone {
                        self.tunnels.end_of_removed(device.id);
                    }
                }
                // A device whose key is still good comes back at once.
                Effect::ActorsChanged(actors) => self.tunnels.end_of(actors),
                Effect::ImagesGone(_) => {}
            }
        }
    }
}

/// Which of these devices are connected to any replica, in their order.
///
/// # Errors
/// Where the database fails.
async fn connected(cloud: &Cloud, mut devices: Vec<RowRight>) -> Result<Vec<RowRight>, DataError> {
    const AT_ONCE: usize = 1000;
    let tunnels = &cloud.reach.tunnels;
    let mut elsewhere = HashSet::new();
    if cloud.bus.has_others() {
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
            for row in cloud.database.rows(&select).await? {
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
pub(crate) async fn run(
    cloud: Shared,
    stop: CancellationToken,
) -> anyhow::Result<tokio::task::JoinHandle<()>> {
    let instance = presence::begin(&cloud).await?;
    let newest = SystemPurpose::Push.sql("SELECT coalesce(max(id), 0) FROM device");
    if let Some(row) = cloud.database.row(&newest).await? {
        cloud.reach.push.begin(row.id(0)?);
    }
    tokio::spawn(
        stop.clone()
            .run_until_cancelled_owned(push::run(cloud.clone())),
    );
    tokio::spawn(
        stop.clone()
            .run_until_cancelled_owned(recheck::run(cloud.clone())),
    );
    Ok(tokio::spawn(presence::run(cloud, instance, stop)))
}
