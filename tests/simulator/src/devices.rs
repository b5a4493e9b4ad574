//! The simulated devices together.

use std::collections::HashMap;
use std::mem;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use cloud_link::{Connections, user_agent};
use model::{Branding, DeviceUuid, Settings};
use serde_json::{Map, Value};
use tokio::sync::{Semaphore, watch};
use tokio_util::sync::CancellationToken;

use crate::device::{Device, OS};
use crate::target::Targets;

/// Requests under way at a time, each with a connection to itself. Many devices that are told at once would
/// otherwise need twice as many open files as there are devices.
pub(crate) const REQUESTS: usize = 500;

/// What all of them have in common.
pub(crate) struct Common {
    /// config.json without what is a device's own.
    config: Map<String, Value>,
    pub(crate) board: String,
    pub(crate) supervisor: String,
    pub(crate) agent: String,
    /// The tunnel's WebSocket subprotocol.
    pub(crate) protocol: String,
    /// Before the first target.
    pub(crate) settings: Settings,
    /// Between two polls, where not the target says.
    pub(crate) interval: Option<Duration>,
    /// From a new release to its end.
    pub(crate) download: Duration,
    pub(crate) connections: OnceLock<Arc<Connections>>,
    /// A place each for [`REQUESTS`].
    pub(crate) requests: Semaphore,
    pub(crate) targets: Targets,
    pub(crate) tally: Tally,
    pub(crate) stop: CancellationToken,
    tunnels: watch::Sender<bool>,
}

impl Common {
    /// Of devices with this config.json, which are of this kind of board.
    pub(crate) fn new(
        config: Map<String, Value>,
        board: &str,
        interval: Option<Duration>,
        download: Duration,
    ) -> Arc<Self> {
        let branding = Branding::default();
        Arc::new(Common {
            config,
            board: board.to_owned(),
            agent: user_agent(&branding.api_level, Some(OS), Some("prod")),
            protocol: branding.tunnel_protocol(),
            supervisor: branding.api_level,
            settings: Settings::of(&Default::default()),
            interval,
            download,
            connections: OnceLock::new(),
            requests: Semaphore::new(REQUESTS),
            targets: Targets::default(),
            tally: Tally::default(),
            stop: CancellationToken::new(),
            tunnels: watch::Sender::new(false),
        })
    }

    /// config.json of the device with this uuid.
    pub(crate) fn config(&self, uuid: &DeviceUuid) -> Map<String, Value> {
        let mut config = self.config.clone();
        config.insert("uuid".to_owned(), uuid.as_str().into());
        config
    }

    /// Whether tunnels are wanted.
    pub(crate) fn wanted(&self) -> watch::Receiver<bool> {
        self.tunnels.subscribe()
    }

    /// They are, from now on.
    pub(crate) fn open_tunnels(&self) {
        self.tunnels.send_replace(true);
    }

    /// Starts so many, of which `at_once` at a time are not registered yet.
    ///
    /// # Errors
    /// Where one cannot be started.
    pub(crate) async fn start(self: &Arc<Self>, devices: u32, at_once: usize) -> Result<()> {
        let places = Arc::new(Semaphore::new(at_once.max(1)));
        for number in 0..devices {
            let place = places.clone().acquire_owned().await?;
            let begun = Instant::now();
            let link = Device::start(self, number)
                .with_context(|| format!("device {number} cannot be started"))?;
            let common = self.clone();
            tokio::spawn(async move {
                link.ready.cancelled().await;
                common.tally.registered(begun.elapsed());
                drop(place);
            });
        }
        Ok(())
    }
}

/// What devices did.
#[derive(Default)]
pub(crate) struct Tally {
    polls: AtomicU64,
    reports: AtomicU64,
    counted: Mutex<RegistrationStats>,
}

#[derive(Default)]
struct RegistrationStats {
    /// How long each registration took.
    registered: Vec<Duration>,
    goal: Option<Goal>,
}

/// A release that all devices are to run.
struct Goal {
    commit: Arc<str>,
    since: Instant,
    /// By the device's number.
    taken: HashMap<u32, Duration>,
    told: HashMap<u32, Duration>,
}

/// What became of a goal.
#[derive(Debug, Default)]
pub(crate) struct GoalResult {
    /// From its beginning until each device had it.
    pub(crate) taken: Vec<Duration>,
    /// Until the cloud knew that of each.
    pub(crate) told: Vec<Duration>,
}

impl Tally {
    fn counted(&self) -> MutexGuard<'_, RegistrationStats> {
        self.counted.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A release with this commit is about to be what all devices are to run.
    pub(crate) fn aim(&self, commit: &str) {
        self.counted().goal = Some(Goal {
            commit: commit.into(),
            since: Instant::now(),
            taken: HashMap::new(),
            told: HashMap::new(),
        });
    }

    /// What became of it; it is none any more.
    pub(crate) fn reached(&self) -> GoalResult {
        let goal = mem::take(&mut self.counted().goal);
        goal.map_or_else(GoalResult::default, |goal| GoalResult {
            taken: goal.taken.into_values().collect(),
            told: goal.told.into_values().collect(),
        })
    }

    /// How many devices run it as far as the cloud knows.
    pub(crate) fn running(&self) -> usize {
        let counted = self.counted();
        counted.goal.as_ref().map_or(0, |goal| goal.told.len())
    }

    /// How many devices have it.
    pub(crate) fn having(&self) -> usize {
        let counted = self.counted();
        counted.goal.as_ref().map_or(0, |goal| goal.taken.len())
    }

    pub(crate) fn registrations(&self) -> Vec<Duration> {
        self.counted().registered.clone()
    }

    pub(crate) fn polls(&self) -> u64 {
        self.polls.load(Ordering::Relaxed)
    }

    pub(crate) fn reports(&self) -> u64 {
        self.reports.load(Ordering::Relaxed)
    }

    pub(crate) fn registered(&self, after: Duration) {
        self.counted().registered.push(after);
    }

    pub(crate) fn polled(&self) {
        self.polls.fetch_add(1, Ordering::Relaxed);
    }

    /// A device has a target with these commits.
    pub(crate) fn taken<'a>(&self, device: u32, mut commits: impl Iterator<Item = &'a str>) {
        if let Some(goal) = &mut self.counted().goal
            && commits.any(|commit| *commit == *goal.commit)
        {
            let after = goal.since.elapsed();
            goal.taken.entry(device).or_insert(after);
        }
    }

    /// The cloud took a report of a device that runs releases with these commits.
    pub(crate) fn reported<'a>(&self, device: u32, mut commits: impl Iterator<Item = &'a str>) {
        self.reports.fetch_add(1, Ordering::Relaxed);
        if let Some(goal) = &mut self.counted().goal
            && commits.any(|commit| *commit == *goal.commit)
        {
            let after = goal.since.elapsed();
            goal.told.entry(device).or_insert(after);
        }
    }
}
