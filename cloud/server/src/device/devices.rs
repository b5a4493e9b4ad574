//! What a replica keeps in memory for devices.

use data::Effect;
use tokio_util::sync::CancellationToken;

use super::heartbeat::pending::Heartbeats;
use super::logs::memory::Logs;
use super::minute_throttle::MinuteThrottle;
use super::state::cache::StateCache;
use crate::bus::Bus;
use crate::configuration::Configuration;

/// What is kept in memory for devices. Every replica may lose its own at any time.
pub(crate) struct Devices {
    pub(crate) states: StateCache,
    pub(crate) heartbeats: Heartbeats,
    /// Measurements that were written.
    pub(crate) metrics: MinuteThrottle,
    /// Reports that were refused.
    pub(crate) refused: MinuteThrottle,
    pub(crate) logs: Logs,
    /// The program ends: streams end with it.
    pub(crate) ending: CancellationToken,
}

impl Devices {
    pub(crate) fn new(configuration: &Configuration, bus: &Bus) -> Self {
        Devices {
            states: StateCache::default(),
            heartbeats: Heartbeats::default(),
            metrics: MinuteThrottle::default(),
            refused: MinuteThrottle::default(),
            logs: Logs::new(configuration, bus),
            ending: CancellationToken::new(),
        }
    }

    /// Learns of what was changed. (What devices should run is looked at with each poll.)
    pub(crate) fn invalidate(&self, effects: &[Effect]) {
        for effect in effects {
            if let Effect::DevicesGone(gone) = effect {
                self.logs.invalidate(gone);
                for gone in gone {
                    self.states.forget(&gone.uuid);
                    self.metrics.forget(gone.id);
                    self.refused.forget(gone.id);
                }
            }
        }
    }
}
