//! The context of all simulated devices: what they share, and what they have done.

use std::collections::HashMap;
use std::mem;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use cloud_link::{Connections, user_agent};
use model::{Branding, DeviceUuid, Settings};
use parking_lot::{Mutex, MutexGuard};
use serde_json::{Map, Value};
use tokio::sync::{Semaphore, watch};
use tokio_util::sync::CancellationToken;

use crate::target::Targets;

/// The operating system that devices report; fleets with several services accept its version.
pub(crate) const OS: &str = "Simulated OS 6.0.0";
/// How many requests are under way at a time, each with its own connection. If many devices are notified at once, they
/// would otherwise need twice as many open files as there are devices.
pub(crate) const REQUESTS: usize = 500;

/// The data that all devices share.
pub(crate) struct DeviceContext {
    /// config.json without the parts that differ by device.
    config: Map<String, Value>,
    pub(crate) board: String,
    pub(crate) supervisor: String,
    pub(crate) agent: String,
    /// The tunnel's WebSocket subprotocol.
    pub(crate) protocol: String,
    /// The settings before the first target.
    pub(crate) settings: Settings,
    /// The pause between two polls, unless the target sets it.
    pub(crate) interval: Option<Duration>,
    /// The time from a new release to its completion.
    pub(crate) download: Duration,
    pub(crate) connections: OnceLock<Arc<Connections>>,
    /// One permit for each of [`REQUESTS`].
    pub(crate) requests: Semaphore,
    pub(crate) targets: Targets,
    pub(crate) tally: Tally,
    pub(crate) stop: CancellationToken,
    tunnels: watch::Sender<bool>,
}

impl DeviceContext {
    /// Creates the data of devices with this config.json and this type of board.
    pub(crate) fn new(
        config: Map<String, Value>,
        board: &str,
        interval: Option<Duration>,
        download: Duration,
    ) -> Arc<Self> {
        let branding = Branding::default();
        Arc::new(DeviceContext {
            config,
            board: board.to_owned(),
            agent: user_agent(&branding.api_level, Some(OS), Some("prod")),
            protocol: branding.tunnel_protocol(),
            supervisor: branding.api_level,
            settings: Settings::from_variables(&Default::default()),
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

    /// Returns the config.json of the device with this uuid.
    pub(crate) fn config(&self, uuid: &DeviceUuid) -> Map<String, Value> {
        let mut config = self.config.clone();
        config.insert("uuid".to_owned(), uuid.as_str().into());
        config
    }

    /// Returns whether tunnels are wanted.
    pub(crate) fn tunnel_switch(&self) -> watch::Receiver<bool> {
        self.tunnels.subscribe()
    }

    /// Makes tunnels wanted from now on.
    pub(crate) fn open_tunnels(&self) {
        self.tunnels.send_replace(true);
    }
}

/// What devices have done.
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

/// A release that all devices should run.
struct Goal {
    commit: Arc<str>,
    since: Instant,
    /// The times by the device's number.
    target_delays: HashMap<u32, Duration>,
    report_delays: HashMap<u32, Duration>,
}

/// The result of a goal.
#[derive(Debug, Default)]
pub(crate) struct GoalResult {
    /// The times from its beginning until each device had it.
    pub(crate) target_delays: Vec<Duration>,
    /// The times until the cloud knew that of each device.
    pub(crate) report_delays: Vec<Duration>,
}

impl Tally {
    fn counted(&self) -> MutexGuard<'_, RegistrationStats> {
        self.counted.lock()
    }

    /// Sets the commit of the release that all devices should run.
    pub(crate) fn aim(&self, commit: &str) {
        self.counted().goal = Some(Goal {
            commit: commit.into(),
            since: Instant::now(),
            target_delays: HashMap::new(),
            report_delays: HashMap::new(),
        });
    }

    /// Returns the result of the goal, and removes the goal.
    pub(crate) fn reached(&self) -> GoalResult {
        let goal = mem::take(&mut self.counted().goal);
        goal.map_or_else(GoalResult::default, |goal| GoalResult {
            target_delays: goal.target_delays.into_values().collect(),
            report_delays: goal.report_delays.into_values().collect(),
        })
    }

    /// Returns how many devices run the goal's release, according to the cloud.
    pub(crate) fn running(&self) -> usize {
        let counted = self.counted();
        counted
            .goal
            .as_ref()
            .map_or(0, |goal| goal.report_delays.len())
    }

    /// Returns how many devices have the goal's release.
    pub(crate) fn having(&self) -> usize {
        let counted = self.counted();
        counted
            .goal
            .as_ref()
            .map_or(0, |goal| goal.target_delays.len())
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

    /// Notes that a device has a target with these commits.
    pub(crate) fn record_target<'a>(
        &self,
        device: u32,
        mut commits: impl Iterator<Item = &'a str>,
    ) {
        if let Some(goal) = &mut self.counted().goal
            && commits.any(|commit| *commit == *goal.commit)
        {
            let after = goal.since.elapsed();
            goal.target_delays.entry(device).or_insert(after);
        }
    }

    /// Notes that the cloud has accepted a report of a device that runs releases with these commits.
    pub(crate) fn reported<'a>(&self, device: u32, mut commits: impl Iterator<Item = &'a str>) {
        self.reports.fetch_add(1, Ordering::Relaxed);
        if let Some(goal) = &mut self.counted().goal
            && commits.any(|commit| *commit == *goal.commit)
        {
            let after = goal.since.elapsed();
            goal.report_delays.entry(device).or_insert(after);
        }
    }
}
