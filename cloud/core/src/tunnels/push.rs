//! Devices are told that there is something new for them (docs/spec/cloud.md#device-push).
//!
//! What a transaction changed is noted here by the one that made it, which never waits. A task sends
//! `POST /v1/update` to the devices that are concerned and connected: so many at once, and as many a second
//! from then on. A device that is concerned twice before its turn is told once. Devices that somebody
//! changed one by one come before those of whole fleets, which may be many.
//!
//! Every replica hears of every change and tells the devices that are connected to it: so the rate is that of
//! one replica. A device that connects is told where it may not have what it should: where the state that it was
//! given last is not the one of now. So nothing has to be remembered of devices that are away, nor is anything
//! lost with a replica that was about to tell them.
//!
//! A database that was restored from a backup says of devices what was true before: that they have a state which they
//! left since. So those that were there when this replica started are told once more as they come back, whatever the
//! database says of them.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::mem;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Bytes;
use data::{DataError, SystemPurpose};
use http::Method;
use tokio::time::{Instant, sleep};

use super::device_connections::DeviceConnections;
use super::device_request::{DeviceRequest, DeviceTarget, push_targets, send};
use crate::generation::fingerprint;

/// Devices of one statement.
const AT_ONCE: usize = 1000;
/// Before what the database refused is tried again.
const AGAIN: Duration = Duration::from_secs(1);
/// Changes often come in a row: what comes this soon after the first is told of with it.
const TOGETHER: Duration = Duration::from_millis(20);

/// Tells devices, for as long as it is polled.
pub(super) async fn run(connections: Arc<DeviceConnections>) {
    let push = &connections.push;
    let mut pace = PushRate::of(connections.pushes_per_second.get());
    loop {
        push.wake.notified().await;
        sleep(TOGETHER).await;
        while !push.queue.lock().is_empty() {
            if let Err(error) = some(&connections, &mut pace).await {
                tracing::warn!("cannot notify devices of changes, trying again: {error}");
                sleep(AGAIN).await;
            }
        }
    }
}

/// Tells as many as may be told now.
async fn some(connections: &Arc<DeviceConnections>, pace: &mut PushRate) -> Result<(), DataError> {
    let push = &connections.push;
    let fleets = mem::take(&mut push.queue.lock().fleets);
    if !fleets.is_empty() {
        match of_fleets(connections, &fleets).await {
            Ok(devices) => {
                let mut queue = push.queue.lock();
                for device in devices {
                    queue.of_fleets.add(device);
                }
            }
            Err(error) => {
                push.queue.lock().fleets.extend(fleets);
                return Err(error);
            }
        }
    }
    let arrived = mem::take(&mut push.queue.lock().arrived);
    if !arrived.is_empty() {
        match behind(connections, &arrived).await {
            Ok(devices) => push.perhaps(devices),
            Err(error) => {
                push.queue.lock().arrived.extend(arrived);
                return Err(error);
            }
        }
    }
    let most = pace.wait().await;
    let mut turn = Vec::new();
    {
        let mut queue = push.queue.lock();
        while turn.len() < most
            && let Some(device) = queue.next()
        {
            // Perhaps another replica reaches it, which has heard of the change as well; or it is told when it is
            // back.
            if connections.open.has(device) {
                turn.push(device);
            }
        }
    }
    pace.spent(turn.len());
    let devices = match push_targets(connections, &turn).await {
        Ok(devices) => devices,
        Err(error) => {
            push.devices(&turn);
            return Err(error);
        }
    };
    for device in devices {
        tokio::spawn(send_update(connections.clone(), device));
    }
    Ok(())
}

/// The devices of fleets, and those whose system or supervisor is of one of them.
async fn of_fleets(
    connections: &DeviceConnections,
    fleets: &HashSet<i64>,
) -> Result<Vec<i64>, DataError> {
    let of_fleets = SystemPurpose::Push.sql(
        "SELECT id FROM device WHERE belongs_to__application IN (?) \
         OR should_be_managed_by__release IN (SELECT id FROM release WHERE belongs_to__application IN (?)) \
         OR should_be_operated_by__release IN (SELECT id FROM release WHERE belongs_to__application IN (?))",
    );
    let of_fleets = of_fleets.with_all(fleets).with_all(fleets).with_all(fleets);
    connections.database.ids(&of_fleets).await
}

/// Of these devices those that were not given what they should run by now, as far as is known.
async fn behind(
    connections: &DeviceConnections,
    arrived: &HashSet<i64>,
) -> Result<Vec<i64>, DataError> {
    let arrived: Vec<i64> = arrived.iter().copied().collect();
    let mut behind = Vec::new();
    for arrived in arrived.chunks(AT_ONCE) {
        // The numbers are those that a state goes by (`device/state/statement.rs`).
        let select = SystemPurpose::Push.sql(
            "WITH arrived AS (SELECT id, belongs_to__application AS fleet, should_be_managed_by__release AS supervisor, \
             should_be_operated_by__release AS system FROM device WHERE id IN (?)), \
             made AS (SELECT id, fleet FROM arrived WHERE fleet IS NOT NULL \
             UNION SELECT a.id, r.belongs_to__application FROM arrived AS a \
             JOIN release AS r ON r.id = a.supervisor OR r.id = a.system) \
             SELECT a.id, CAST(NULL AS BIGINT), coalesce(g.generation, 0), h.given FROM arrived AS a \
             LEFT JOIN device_heartbeat AS h ON h.device = a.id \
             LEFT JOIN state_generation AS g ON g.kind = 'device' AND g.row_id = a.id \
             UNION ALL SELECT m.id, m.fleet, coalesce(g.generation, 0), NULL FROM made AS m \
             LEFT JOIN state_generation AS g ON g.kind = 'application' AND g.row_id = m.fleet",
        );
        let rows = connections.database.rows(&select.with_all(arrived)).await?;
        let mut made: HashMap<i64, StateSources> = HashMap::new();
        for row in rows {
            let made = made.entry(row.id(0)?).or_default();
            match row.number(1)? {
                Some(fleet) => {
                    made.of_fleets.insert(fleet, row.id(2)?);
                }
                None => (made.of_device, made.given) = (row.id(2)?, row.number(3)?),
            }
        }
        let late = made.into_iter().filter(|(_, made)| {
            let now = fingerprint(made.of_device, &made.of_fleets);
            made.given != Some(now)
        });
        behind.extend(late.map(|(device, _)| device));
    }
    behind.sort_unstable();
    Ok(behind)
}

/// What the state of a device would be made from now, and which one it was given.
#[derive(Default)]
struct StateSources {
    of_device: i64,
    of_fleets: BTreeMap<i64, i64>,
    given: Option<i64>,
}

async fn send_update(connections: Arc<DeviceConnections>, device: DeviceTarget) {
    let id = device.id;
    let request = DeviceRequest {
        method: Method::POST,
        path: "/v1/update".to_owned(),
        query: None,
        body: Some(Bytes::from_static(b"{}")),
    };
    let patience = connections.settings.push();
    match send(&connections, &device, &request, patience).await {
        Ok(answer) if answer.status().is_success() => {}
        Ok(answer) => {
            tracing::debug!(device = id, status = %answer.status(), "a device refused to check for its target")
        }
        Err(error) => {
            tracing::debug!(device = id, %error, "a device was not notified");
        }
    }
}

/// So many at once, and as many a second from then on.
struct PushRate {
    most: f64,
    left: f64,
    since: Instant,
}

impl PushRate {
    fn of(per_second: u32) -> Self {
        PushRate {
            most: f64::from(per_second),
            left: f64::from(per_second),
            since: Instant::now(),
        }
    }

    /// How many are free, once one is.
    async fn wait(&mut self) -> usize {
        self.count();
        if self.left < 1.0 {
            sleep(Duration::from_secs_f64((1.0 - self.left) / self.most)).await;
            self.count();
        }
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "between 0 and a number of 32 bits"
        )]
        let whole = self.left as usize;
        whole.max(1)
    }

    fn count(&mut self) {
        let now = Instant::now();
        let earned = (now - self.since).as_secs_f64() * self.most;
        self.left = (self.left + earned).min(self.most);
        self.since = now;
    }

    fn spent(&mut self, number: usize) {
        self.left -= f64::from(u32::try_from(number).unwrap_or(u32::MAX));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_hundred_go_at_once_and_a_hundred_a_second_from_then_on() {
        let mut pace = PushRate::of(100);
        let begun = Instant::now();
        let mut sent = Vec::new();
        for _ in 0..350 {
            let free = pace.wait().await;
            assert!(free >= 1);
            pace.spent(1);
            sent.push(begun.elapsed().as_millis());
        }
        assert_eq!(sent[99], 0, "{sent:?}");
        assert!((900..=1010).contains(&sent[199]), "{}", sent[199]);
        assert!((2400..=2600).contains(&sent[349]), "{}", sent[349]);
    }
}
