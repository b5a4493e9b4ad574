//! A device that polls is online; one that has not polled for one and a half of its intervals is not, or soon will not
//! be (docs/spec/cloud.md#device-online).
//!
//! Deadlines are rows with times of the database's clock, so they survive restarts and are valid for all replicas.
//! Polls are noted in memory and written in batches: a crash loses less than a second of deadlines that are minutes
//! away. One task looks up devices that are due in an index; if several replicas do this, each takes different rows.

pub(super) mod pending;

use std::time::Duration;

use cloud_core::clock::now;
use cloud_core::cloud::{Cloud, SharedCloud};
use data::{BuiltStatement, DataError, Dialect, SystemPurpose, Transaction};
use tokio::time::{MissedTickBehavior, interval, sleep};
use tokio_util::sync::CancellationToken;

use pending::PollRecord;

use crate::state::ServerState;

/// How long polls are collected before they are written.
const GATHERED: Duration = Duration::from_millis(200);
/// Interval between checks for devices that are due.
const LOOK: Duration = Duration::from_secs(1);
/// From `timeout` to `offline`, in milliseconds.
const SECOND_CHANCE: i64 = 15_000;
/// Devices in one statement.
const AT_ONCE: usize = 1000;

/// Writes noted polls until `stop`, then the remaining ones.
pub(crate) async fn noting(server: ServerState, stop: CancellationToken) {
    let heartbeats = &server.devices.heartbeats;
    loop {
        let more = stop.run_until_cancelled(heartbeats.added()).await;
        let more = match more {
            Some(()) => stop.run_until_cancelled(sleep(GATHERED)).await,
            None => None,
        };
        let records = heartbeats.take();
        for some in records.chunks(AT_ONCE) {
            if let Err(error) = write(&server.cloud, some).await {
                tracing::warn!("cannot record which devices polled, trying again later: {error}");
                heartbeats.put_back(some);
                let _ = stop.run_until_cancelled(sleep(LOOK)).await;
                heartbeats.wake();
            }
        }
        if more.is_none() {
            return;
        }
    }
}

async fn write(cloud: &Cloud, polls: &[(i64, PollRecord)]) -> Result<(), DataError> {
    let now = now();
    let mut transaction = cloud.database.begin().await?;
    transaction
        .execute(&deadlines(transaction.dialect(), polls))
        .await?;
    let ids: Vec<i64> = polls.iter().map(|(device, _)| *device).collect();
    set_state(&mut transaction, &ids, "online", now).await?;
    transaction.commit().await
}

/// Builds the statement that sets the deadlines of those devices that still exist.
fn deadlines(dialect: Dialect, polls: &[(i64, PollRecord)]) -> BuiltStatement {
    let mut text = "INSERT INTO device_heartbeat (device, deadline, given) \
                    SELECT d.id, v.column2 + "
        .to_owned();
    text.push_str(dialect.now());
    text.push_str(", v.column3 FROM (VALUES ");
    let mut values = Vec::with_capacity(3 * polls.len());
    for (at, (device, polled)) in polls.iter().enumerate() {
        if at > 0 {
            text.push(',');
        }
        match dialect {
            Dialect::Sqlite => text.push_str("(?,?,?)"),
            Dialect::Postgres => {
                let first = 3 * at + 1;
                text.push_str(&format!("(${first},${},${})", first + 1, first + 2));
            }
        }
        values.extend([
            (*device).into(),
            polled.left().into(),
            polled.generation.into(),
        ]);
    }
    text.push_str(
        ") AS v JOIN device AS d ON d.id = v.column1 WHERE TRUE \
         ON CONFLICT (device) DO UPDATE SET deadline = excluded.deadline, given = excluded.given",
    );
    SystemPurpose::Heartbeat.text(text, values)
}

/// Sets the state; only rows that change are written.
async fn set_state(
    transaction: &mut Transaction,
    devices: &[i64],
    state: &'static str,
    now: i64,
) -> Result<(), DataError> {
    if devices.is_empty() {
        return Ok(());
    }
    let update = SystemPurpose::Heartbeat.sql(
        "UPDATE device SET api_heartbeat_state = ?, changed_api_heartbeat_state_on__date = ?, modified_at = ? \
         WHERE id IN (?) AND api_heartbeat_state <> ?",
    )
    .with(state)
    .with(now)
    .with(now)
    .with_all(devices)
    .with(state);
    transaction.execute(&update).await?;
    Ok(())
}

/// Finds silent devices, until `stop`.
pub(crate) async fn expiring(cloud: SharedCloud, stop: CancellationToken) {
    let mut times = interval(LOOK);
    times.set_missed_tick_behavior(MissedTickBehavior::Delay);
    while stop.run_until_cancelled(times.tick()).await.is_some() {
        loop {
            match expire(&cloud).await {
                Ok(found) if found >= AT_ONCE && !stop.is_cancelled() => {}
                Ok(_) => break,
                Err(error) => {
                    tracing::warn!("failed to find devices that no longer poll: {error}");
                    break;
                }
            }
        }
    }
}

/// Moves devices that are due to their next state, and returns how many there were.
async fn expire(cloud: &Cloud) -> Result<usize, DataError> {
    let due = SystemPurpose::Heartbeat
        .sql("SELECT id FROM device_heartbeat WHERE deadline <= now_ms() LIMIT 1");
    // This check locks nothing.
    if cloud.database.row(&due).await?.is_none() {
        return Ok(0);
    }
    let now = now();
    let mut transaction = cloud.database.begin().await?;
    let due = match transaction.dialect() {
        Dialect::Sqlite => SystemPurpose::Heartbeat.sql(
            "SELECT h.device, d.api_heartbeat_state FROM device_heartbeat AS h \
             JOIN device AS d ON d.id = h.device WHERE h.deadline <= now_ms() ORDER BY h.deadline LIMIT 1000",
        ),
        Dialect::Postgres => SystemPurpose::Heartbeat.sql(
            "SELECT h.device, d.api_heartbeat_state FROM device_heartbeat AS h \
             JOIN device AS d ON d.id = h.device WHERE h.deadline <= now_ms() ORDER BY h.deadline LIMIT 1000 \
             FOR UPDATE OF h SKIP LOCKED",
        ),
    };
    let rows = transaction.rows(&due).await?;
    let mut late = Vec::new();
    let mut silent = Vec::new();
    for row in &rows {
        let device = row.id(0)?;
        match row.some_text(1)?.as_str() {
            "online" => late.push(device),
            _ => silent.push(device),
        }
    }
    late.sort_unstable();
    silent.sort_unstable();
    set_state(&mut transaction, &late, "timeout", now).await?;
    set_state(&mut transaction, &silent, "offline", now).await?;
    let again = SystemPurpose::Heartbeat
        .sql("UPDATE device_heartbeat SET deadline = now_ms() + ? WHERE device IN (?)")
        .with(SECOND_CHANCE)
        .with_all(&late);
    transaction.execute(&again).await?;
    let done = SystemPurpose::Heartbeat
        .sql("DELETE FROM device_heartbeat WHERE device IN (?)")
        .with_all(&silent);
    transaction.execute(&done).await?;
    transaction.commit().await?;
    Ok(rows.len())
}
