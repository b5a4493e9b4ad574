//! What the reconciler is started with.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use device_types::event::{Audience, Event};
use engine::Engines;
use model::compose::DeviceFacts;
use model::contracts::Offers;
use store::Store;

use crate::{Host, Moments, ReadTargetPolicy};

/// A subscriber of events.
pub type OnEvent = Arc<dyn Fn(Audience, Event) + Send + Sync>;

/// What the loop works with. Cheap parts are clones of what the binary holds.
#[derive(Clone)]
pub struct ReconcilerConfig {
    /// Where services run.
    pub engines: Engines,
    /// What outlives a restart: targets, keys, intents.
    pub store: Store,
    /// Asked for each new target; may answer from memory, and must not block for long.
    pub facts: Arc<dyn Fn() -> DeviceFacts + Send + Sync>,
    /// The host's root folder as this process sees it: the lock folders are below it.
    pub host_root: PathBuf,
    /// The host itself: its configuration, and its reboot.
    pub host: Arc<dyn Host>,
    /// The device has a cloud. One that has none is in local mode from its start (docs/spec/device.md#local-mode).
    pub managed: bool,
    /// Called with each event, from the loop itself: it must not wait for anything.
    pub on_event: OnEvent,
    /// What contracts of services are held to.
    pub offers: Offers,
    /// What has to be signed of targets; asked on threads that may block.
    pub target_policy: ReadTargetPolicy,
    /// How much is done at a time, and how long is waited.
    pub limits: Limits,
    /// Who is told of the moments at which a kill may come: tests alone.
    pub moments: Moments,
}

/// Bounds of the loop.
#[derive(Debug, Clone)]
pub struct Limits {
    /// Images that are pulled at the same time.
    pub pulls: usize,
    /// Other steps at the same time.
    pub steps: usize,
    /// The longest wait before something that failed is tried again: the poll interval, 15 min.
    pub retry_cap: Duration,
    /// The longest wait before an engine that does not answer is asked again.
    pub engine_retry_cap: Duration,
    /// Log lines kept for readers that are behind.
    pub log_lines: usize,
    /// How long steps that disturb a service may take to end when the supervisor is told to stop.
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
