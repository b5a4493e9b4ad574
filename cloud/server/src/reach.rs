//! How the cloud reaches devices (cloud behaviour 4.6 and 4.8).
//!
//! ```text
//! device ── GET /device/v3/:uuid/tunnel ──► tunnel ──► open (the map of tunnels)
//!                                                       │
//! POST /supervisor/… ──► proxy ── ask ──────────────────┤
//! effects of writes  ──► push  ── ask: /v1/update ──────┤
//!                                                       └─► presence ──► database, a batch at a time
//! ```
//!
//! A tunnel is where its device is: the rows in the database follow the map, and never the other way round.

mod ask;
mod open;
mod presence;
pub(crate) mod proxy;
mod push;
pub(crate) mod tunnel;

use data::Effect;
use tokio_util::sync::CancellationToken;

use crate::cloud::Shared;
use open::Tunnels;
use presence::Presence;
use push::Push;

/// The devices that are reached from here.
#[derive(Default)]
pub(crate) struct Reach {
    tunnels: Tunnels,
    presence: Presence,
    push: Push,
}

impl Reach {
    /// Something was changed: devices are told, and what is no longer permitted ends.
    pub(crate) fn heed(&self, effects: &[Effect]) {
        for effect in effects {
            match effect {
                Effect::DevicesChanged(devices) => self.push.devices(devices),
                Effect::FleetsChanged(fleets) => self.push.fleets(fleets),
                Effect::DevicesGone(gone) => {
                    for device in gone {
                        self.tunnels.close(device.id);
                    }
                }
                // A device whose key is still good comes back at once.
                Effect::ActorsChanged(actors) => self.tunnels.close_of(actors),
                Effect::ImagesGone(_) => {}
            }
        }
    }
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
    tokio::spawn(
        stop.clone()
            .run_until_cancelled_owned(push::run(cloud.clone())),
    );
    Ok(tokio::spawn(presence::run(cloud, instance, stop)))
}
