//! The configuration of the reconciler.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use device_types::event::{Audience, Event};
use engine::Engines;
use model::compose::DeviceFacts;
use model::contracts::DeviceProperties;
use store::Store;

use crate::{Host, Moments, ReadTargetPolicy};

/// A subscriber of events.
pub type EventSubscriber = Arc<dyn Fn(Audience, Event) + Send + Sync>;

/// Everything the loop works with. Cheap parts are clones of the binary's own.
#[derive(Clone)]
pub struct ReconcilerConfig {
    /// The engines that run services.
    pub engines: Engines,
    /// The data that outlives a restart: targets, keys, intents.
    pub store: Store,
    /// Called for each new target; may answer from memory, and must not block for long.
    pub facts: Arc<dyn Fn() -> DeviceFacts + Send + Sync>,
    /// The host's root folder as this process sees it: the lock folders are below it.
    pub host_root: PathBuf,
    /// The host itself: its configuration, and its reboot.
    pub host: Arc<dyn Host>,
    /// Whether the device has a cloud. Without one, it is in local mode from its start
    /// (docs/spec/device.md#local-mode).
    pub managed: bool,
    /// Called with each event, from the loop itself: it must not wait for anything.
    pub on_event: EventSubscriber,
    /// The offers that the contracts of services are checked against.
    pub offers: DeviceProperties,
    /// The policy on signatures of targets; read on threads that may block.
    pub target_policy: ReadTargetPolicy,
    /// Limits on parallel work and on waiting times.
    pub limits: Limits,
    /// The listener for moments at which a kill may occur: only in tests.
    pub moments: Moments,
}

/// Limits of the loop.
#[derive(Debug, Clone)]
pub struct Limits {
    /// The maximum number of parallel image pulls.
    pub pulls: usize,
    /// The maximum number of other parallel steps.
    pub steps: usize,
    /// The longest delay before a failed step is tried again: the poll interval, 15 min.
    pub retry_cap: Duration,
    /// The longest delay before an engine that does not answer is tried again.
    pub engine_retry_cap: Duration,
    /// The number of log lines kept for readers that lag behind.
    pub log_lines: usize,
    /// How long steps that disturb a service may take to end when the supervisor is stopped.
    pub shutdown: Duration,
}

impl Default for Limits {
    /// 4 pulls, 32 steps, 15 min, 30 s, 1024 lines, 3 s.
    fn default() -> Self {
        Limits {
            pulls: 4,
            steps: 32,
            retry_cap: Duration::from_secs(900),
            engine_retry_cap: Duration::from_secs(30),
            log_lines: 1024,
            shutdown: Duration::from_secs(3),
        }
    }
}
