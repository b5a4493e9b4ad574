//! Records in the database which devices are connected (docs/spec/cloud.md#device-online).
//!
//! When a device connects or disconnects, it is noted; one task writes the noted devices, with the state that the map
//! of tunnels has at that time, many devices per transaction. So thousands of devices that connect at once need only a
//! few writes, and a device that reconnects before the next write needs none.
//!
//! Each replica has a row among the service instances and updates its time regularly. If a replica disappears without
//! notice, its devices are marked as disconnected by the others, or by itself when it is back.

use std::mem;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result};
use data::write::{Writer, row};
use data::{DataError, Database, Dialect, Sql, SystemPurpose};
use serde_json::json;
use tokio::time::{MissedTickBehavior, interval, sleep, timeout};
use tokio_util::sync::CancellationToken;

use super::device_connections::DeviceConnections;
use super::open::LONGEST_END;
use crate::clock::now;

/// Interval between two updates of this replica's time.
const RENEW: Duration = Duration::from_secs(10);
/// A replica whose time is older than this many milliseconds counts as gone. Only the database's clock is used: the
/// clocks of replicas may differ by more.
const GONE_AFTER: i64 = 35_000;
/// Devices of one statement.
const AT_ONCE: usize = 1000;
/// Delay before a refused write is tried again.
const AGAIN: Duration = Duration::from_secs(1);

/// This replica's row in the database.
pub(super) struct Instance {
    id: i64,
}

/// Registers this replica. With an embedded database there is no other replica, so nothing is connected yet.
///
/// # Errors
/// If the database fails.
pub(super) async fn begin(connections: &DeviceConnections) -> Result<Instance> {
    let database = &connections.database;
    let gone_after = match database.dialect() {
        // There is no other program, whatever its row says.
        Dialect::Sqlite => i64::MIN,
        Dialect::Postgres => GONE_AFTER,
    };
    without_the_gone(database, gone_after)
        .await
        .context("devices of an earlier start cannot be seen as disconnected")?;
    let id = register(connections).await?;
    Ok(Instance { id })
}

async fn register(connections: &DeviceConnections) -> Result<i64> {
    let address = match connections.listen.ip() {
        IpAddr::V6(address) => address.to_canonical(),
        address => address,
    };
    let row = row(json!({
        "service_type": "vpn", "ip_address": address.to_string(), "last_heartbeat": now(),
    }));
    let mut transaction = connections.database.begin().await?;
    let id = Writer::platform(
        SystemPurpose::Presence,
        &mut transaction,
        &connections.environment,
        now(),
    )
    .create("service_instance", &row)
    .await
    .context("this replica cannot be announced to the others")?;
    transaction.execute(&renewal(id)).await?;
    transaction.commit().await?;
    Ok(id)
}

/// Keeps the database up to date until `stop`, then removes this replica from it.
pub(super) async fn run(
    connections: Arc<DeviceConnections>,
    mut instance: Instance,
    stop: CancellationToken,
) {
    let presence = &connections.presence;
    let mut renewals = interval(RENEW);
    renewals.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            () = stop.cancelled() => break,
            _ = renewals.tick() => if let Err(error) = renew(&connections, &mut instance).await {
                tracing::warn!(
                    "failed to renew this replica's heartbeat in the database; if that continues, other replicas mark \
                     its devices as disconnected: {error:#}"
                );
            },
            () = presence.wake.notified() => if let Err(error) = write(&connections, &instance).await {
                tracing::warn!("cannot record which devices are connected, trying again: {error}");
                sleep(AGAIN).await;
                presence.wake.notify_one();
            },
        }
    }
    let tunnels = &connections.open;
    tunnels.end_all();
    let (left, notification) = tokio::join!(
        leave(&connections.database, instance.id, now()),
        timeout(LONGEST_END, tunnels.carrying.wait()),
    );
    if let Err(error) = left {
        tracing::warn!(
            "failed to mark this replica's devices as disconnected; another replica does so within 45 s, or this one \
             at its next start: {error}"
        );
    }
    if notification.is_err() {
        tracing::warn!("some devices were not notified that this replica is stopping");
    }
}

async fn renew(connections: &DeviceConnections, instance: &mut Instance) -> Result<()> {
    let database = &connections.database;
    if database.execute(&renewal(instance.id)).await? == 0 {
        // The others had marked this replica as gone, and its devices as disconnected.
        instance.id = register(connections).await?;
        connections.presence.all_changed(connections.open.all());
    }
    if database.dialect() == Dialect::Postgres {
        without_the_gone(database, GONE_AFTER).await?;
    }
    Ok(())
}

fn renewal(instance: i64) -> Sql {
    SystemPurpose::Presence
        .sql("UPDATE service_instance SET last_heartbeat = now_ms() WHERE id = ?")
        .with(instance)
}

/// Disconnects all devices of replicas whose time was not updated for this many milliseconds.
async fn without_the_gone(database: &Database, after: i64) -> Result<(), DataError> {
    let instances = SystemPurpose::Presence.sql(
        "SELECT id FROM service_instance WHERE service_type = 'vpn' AND now_ms() - last_heartbeat > ?",
    );
    for instance in database.ids(&instances.with(after)).await? {
        leave(database, instance, now()).await?;
    }
    let nobody_holds = SystemPurpose::Presence.sql(
        "UPDATE device SET is_connected_to_vpn = FALSE, is_online = FALSE, last_vpn_event = ?, \
         last_connectivity_event = ?, modified_at = ? \
         WHERE is_connected_to_vpn = TRUE AND is_managed_by__service_instance IS NULL",
    );
    let now = now();
    database
        .execute(&nobody_holds.with(now).with(now).with(now))
        .await?;
    Ok(())
}

/// Removes a replica that is gone, and disconnects its devices.
async fn leave(database: &Database, instance: i64, now: i64) -> Result<(), DataError> {
    let mut transaction = database.begin().await?;
    let devices = SystemPurpose::Presence.sql(
        "UPDATE device SET is_connected_to_vpn = FALSE, is_online = FALSE, last_vpn_event = ?, \
         last_connectivity_event = ?, modified_at = ?, is_managed_by__service_instance = NULL \
         WHERE is_managed_by__service_instance = ?",
    );
    let devices = devices.with(now).with(now).with(now).with(instance);
    transaction.execute(&devices).await?;
    let row = SystemPurpose::Presence
        .sql("DELETE FROM service_instance WHERE id = ?")
        .with(instance);
    transaction.execute(&row).await?;
    transaction.commit().await
}

/// Writes noted changes; changes that cannot be written are noted again.
async fn write(connections: &DeviceConnections, instance: &Instance) -> Result<(), DataError> {
    let presence = &connections.presence;
    loop {
        let noted = mem::take(&mut *presence.devices.lock());
        if noted.is_empty() {
            return Ok(());
        }
        // Sorted, so that replicas do not wait for each other in a circle.
        let mut devices: Vec<i64> = noted.into_iter().collect();
        devices.sort_unstable();
        for (at, some) in devices.chunks(AT_ONCE).enumerate() {
            if let Err(error) = write_some(connections, instance, some).await {
                let rest = devices.iter().skip(at * AT_ONCE).copied();
                presence.devices.lock().extend(rest);
                return Err(error);
            }
        }
    }
}

async fn write_some(
    connections: &DeviceConnections,
    instance: &Instance,
    devices: &[i64],
) -> Result<(), DataError> {
    let (here, away): (Vec<i64>, Vec<i64>) = devices
        .iter()
        .partition(|device| connections.open.has(**device));
    let now = now();
    let mut transaction = connections.database.begin().await?;
    if !here.is_empty() {
        // One statement: between two, the replica that the device leaves might intervene, and the device would be held
        // here but marked as disconnected. A device that moves from one replica to another was never offline.
        let came = SystemPurpose::Presence.sql(
            "UPDATE device SET is_connected_to_vpn = TRUE, is_online = TRUE, \
             last_vpn_event = CASE WHEN is_connected_to_vpn = TRUE THEN last_vpn_event ELSE ? END, \
             last_connectivity_event = CASE WHEN is_connected_to_vpn = TRUE THEN last_connectivity_event ELSE ? END, \
             modified_at = CASE WHEN is_connected_to_vpn = TRUE THEN modified_at ELSE ? END, \
             is_managed_by__service_instance = ? \
             WHERE id IN (?) AND (is_connected_to_vpn = FALSE OR is_managed_by__service_instance IS NULL \
             OR is_managed_by__service_instance <> ?)",
        );
        let came = came
            .with(now)
            .with(now)
            .with(now)
            .with(instance.id)
            .with_all(&here)
            .with(instance.id);
        transaction.execute(&came).await?;
    }
    if !away.is_empty() {
        // Another replica may hold it already.
        let went = SystemPurpose::Presence.sql(
            "UPDATE device SET is_connected_to_vpn = FALSE, is_online = FALSE, last_vpn_event = ?, \
             last_connectivity_event = ?, modified_at = ?, is_managed_by__service_instance = NULL \
             WHERE id IN (?) AND is_managed_by__service_instance = ?",
        );
        let went = went
            .with(now)
            .with(now)
            .with(now)
            .with_all(&away)
            .with(instance.id);
        transaction.execute(&went).await?;
    }
    transaction.commit().await
}
