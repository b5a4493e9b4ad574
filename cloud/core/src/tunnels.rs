//! How the cloud reaches devices (docs/spec/cloud.md#supervisor-proxy, docs/spec/cloud.md#device-online).
//!
//! ```text
//! device ── GET /device/v3/:uuid/tunnel ──► tunnel ──► open (the map of tunnels)
//!                                                       │
//! POST /supervisor/… ──► proxy ── ask ──────────────────┤
//!                                  └─ bus: the replica that has the tunnel, if it is another one
//! effects of writes  ──► push  ── ask: /v1/update ──────┤
//!                                                       └─► presence ──► database, a batch at a time
//! ```
//!
//! The map of tunnels determines which devices are connected: the rows in the database follow it, never the other way
//! round.

mod device_connections;
pub mod device_request;
mod open;
mod presence;
mod presence_changes;
pub mod proxy;
mod push;
mod push_queue;
mod recheck;
pub mod tunnel;

use std::sync::Arc;

use data::SystemPurpose;
use tokio_util::sync::CancellationToken;

pub use device_connections::DeviceConnections;
pub use open::Opener;

/// Keeps the database up to date and sends push notifications, until `stop`; after that, no device is connected any
/// more.
///
/// # Errors
/// If the database fails at the start.
pub async fn run(
    connections: Arc<DeviceConnections>,
    stop: CancellationToken,
) -> anyhow::Result<tokio::task::JoinHandle<()>> {
    let instance = presence::begin(&connections).await?;
    let newest = SystemPurpose::Push.sql("SELECT coalesce(max(id), 0) FROM device");
    if let Some(newest) = connections.database.id(&newest).await? {
        connections.push.begin(newest);
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
