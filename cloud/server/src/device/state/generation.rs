//! Checks whether a cached state is still valid, by the numbers that writes increase (`data::generation`).
//!
//! Polls that arrive during a statement are handled together by the next one. So many simultaneous polls need few
//! statements, and each poll is answered by a statement that began after it arrived.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use cloud_core::generation::fingerprint;
use data::{DataError, Database, SystemPurpose};
use parking_lot::Mutex;
use tokio::sync::oneshot;

/// Maximum number of polls in one statement.
const AT_ONCE: usize = 64;

/// Reads the numbers. Clones share one queue.
#[derive(Clone, Default)]
pub(super) struct Generations {
    waiting: Arc<Mutex<PollQueue>>,
}

#[derive(Default)]
struct PollQueue {
    /// Whether a task is running statements for the waiting polls.
    is_asking: bool,
    polls: Vec<Poll>,
}

struct Poll {
    device: i64,
    fleets: Vec<i64>,
    answer: oneshot::Sender<Option<i64>>,
}

impl Generations {
    /// Returns the [`fingerprint`] of the numbers of a device and of the fleets that its state depends on; none if the
    /// device was deleted.
    ///
    /// # Errors
    /// If the database fails.
    pub(super) async fn for_device(
        &self,
        database: &Database,
        device: i64,
        fleets: &[i64],
    ) -> Result<Option<i64>, DataError> {
        let (answer, answered) = oneshot::channel();
        let poll = Poll {
            device,
            fleets: fleets.to_vec(),
            answer,
        };
        let is_first = {
            let mut waiting = self.waiting.lock();
            waiting.polls.push(poll);
            !std::mem::replace(&mut waiting.is_asking, true)
        };
        if is_first {
            // A caller that stops waiting must not stop the statement that others wait for.
            let asking = GenerationQuery {
                generations: self.clone(),
                is_over: false,
            };
            tokio::spawn(asking.ask(database.clone()));
        }
        match answered.await {
            Ok(generation) => Ok(generation),
            // Each caller runs its own statement to get the error.
            Err(_) => {
                let rows = look(database, &[device], fleets).await?;
                Ok(rows.fingerprint(device, fleets))
            }
        }
    }
}

/// Runs statements for waiting polls. If it is dropped early, the callers run their own.
struct GenerationQuery {
    generations: Generations,
    is_over: bool,
}

impl GenerationQuery {
    async fn ask(mut self, database: Database) {
        loop {
            let polls = {
                let mut waiting = self.generations.waiting.lock();
                let most = waiting.polls.len().min(AT_ONCE);
                let polls: Vec<Poll> = waiting.polls.drain(..most).collect();
                if polls.is_empty() {
                    // From here on, another task may take over.
                    waiting.is_asking = false;
                    drop(waiting);
                    self.is_over = true;
                    return;
                }
                polls
            };
            let devices: HashSet<i64> = polls.iter().map(|poll| poll.device).collect();
            let fleets = polls.iter().flat_map(|poll| &poll.fleets).copied();
            let fleets: HashSet<i64> = fleets.collect();
            let [devices, fleets] = [devices, fleets].map(padded);
            let Ok(rows) = look(&database, &devices, &fleets).await else {
                continue;
            };
            for poll in polls {
                let generation = rows.fingerprint(poll.device, &poll.fleets);
                // An error means that the caller no longer waits.
                let _ = poll.answer.send(generation);
            }
        }
    }
}

impl Drop for GenerationQuery {
    fn drop(&mut self) {
        if self.is_over {
            return;
        }
        let mut waiting = self.generations.waiting.lock();
        waiting.polls.clear();
        waiting.is_asking = false;
    }
}

/// Pads the list, so that there are few different statements, which stay prepared.
fn padded(numbers: HashSet<i64>) -> Vec<i64> {
    let mut numbers: Vec<i64> = numbers.into_iter().collect();
    let last = numbers.last().copied().unwrap_or(-1);
    numbers.resize(numbers.len().next_power_of_two(), last);
    numbers
}

/// The numbers found by one statement.
struct GenerationRows {
    devices: HashMap<i64, i64>,
    fleets: HashMap<i64, i64>,
}

impl GenerationRows {
    fn fingerprint(&self, device: i64, fleets: &[i64]) -> Option<i64> {
        let of_device = self.devices.get(&device)?;
        let of_fleet = |fleet: &i64| self.fleets.get(fleet).copied().unwrap_or_default();
        let of_fleets = fleets.iter().map(|fleet| (*fleet, of_fleet(fleet)));
        Some(fingerprint(*of_device, &of_fleets.collect()))
    }
}

async fn look(
    database: &Database,
    devices: &[i64],
    fleets: &[i64],
) -> Result<GenerationRows, DataError> {
    let select = SystemPurpose::TargetState.sql(
        "SELECT 1, d.id, coalesce((SELECT generation FROM state_generation WHERE kind = 'device' AND row_id = d.id), 0) \
         FROM device AS d WHERE d.id IN (?) \
         UNION ALL SELECT 2, row_id, generation FROM state_generation WHERE kind = 'application' AND row_id IN (?)",
    );
    let select = select.with_all(devices).with_all(fleets);
    let mut rows = GenerationRows {
        devices: HashMap::new(),
        fleets: HashMap::new(),
    };
    for row in database.rows(&select).await? {
        let numbers = match row.id(0)? {
            1 => &mut rows.devices,
            _ => &mut rows.fleets,
        };
        numbers.insert(row.id(1)?, row.id(2)?);
    }
    Ok(rows)
}
