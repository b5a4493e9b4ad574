//! Notifies devices of changes (docs/spec/cloud.md#device-push).
//!
//! The effects of a transaction are noted here by its own task, which never waits. Another task sends `POST /v1/update`
//! to the connected devices that are affected: a number at once, and that number per second after that. A device that
//! is affected twice before its turn is notified once. Devices that were changed one by one precede those of whole
//! fleets, which may be many.
//!
//! Every replica receives every change and notifies the devices that are connected to it, so the rate is per replica. A
//! device that connects is notified if it may be outdated: if the last state sent to it is not the current one. So
//! nothing has to be stored for devices that are offline, and nothing is lost with a replica that was about to notify
//! them.
//!
//! A database restored from a backup contains outdated information: it names states that devices have since left.
//! Therefore devices that existed when this replica started are notified once more when they come back, whatever the
//! database says.

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
/// Delay before a failed database access is tried again.
const AGAIN: Duration = Duration::from_secs(1);
/// Changes often come in series: those within this time after the first are announced together with it.
const TOGETHER: Duration = Duration::from_millis(20);

/// Sends notifications, for as long as it is polled.
pub(super) async fn run(connections: Arc<DeviceConnections>) {
    let push = &connections.push;
    let mut pace = PushRate::new(connections.pushes_per_second.get());
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

/// Notifies as many devices as the rate allows now.
async fn some(connections: &Arc<DeviceConnections>, pace: &mut PushRate) -> Result<(), DataError> {
    let push = &connections.push;
    let fleets = mem::take(&mut push.queue.lock().fleets);
    if !fleets.is_empty() {
        match find_devices(connections, &fleets).await {
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
            // Otherwise another replica may reach it, which has received the change as well, or it is notified when it
            // is back.
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

/// Returns the devices of fleets, and devices whose system or supervisor belongs to one of the fleets.
async fn find_devices(
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

/// Returns those of these devices that, as far as is known, were not sent their current target state.
async fn behind(
    connections: &DeviceConnections,
    arrived: &HashSet<i64>,
) -> Result<Vec<i64>, DataError> {
    let arrived: Vec<i64> = arrived.iter().copied().collect();
    let mut behind = Vec::new();
    for arrived in arrived.chunks(AT_ONCE) {
        // The numbers are the inputs of a target state (`device/state/statement.rs`).
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

/// The current inputs of a device's target state, and the state that it was last sent.
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

/// A limit of a number at once, and that number per second after that.
struct PushRate {
    most: f64,
    left: f64,
    since: Instant,
}

impl PushRate {
    fn new(per_second: u32) -> Self {
        PushRate {
            most: f64::from(per_second),
            left: f64::from(per_second),
            since: Instant::now(),
        }
    }

    /// Waits until a notification is allowed, and returns how many are.
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
        let mut pace = PushRate::new(100);
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
