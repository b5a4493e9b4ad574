//! The data that a replica keeps in memory for devices.

use data::Effect;

use super::heartbeat::pending::Heartbeats;
use super::logs::limits::LogLimits;
use super::minute_throttle::MinuteThrottle;
use super::state::cache::StateCache;

/// Data in memory for devices. Every replica may lose its own at any time.
#[derive(Default)]
pub(crate) struct Devices {
    pub(crate) states: StateCache,
    pub(crate) heartbeats: Heartbeats,
    /// When measurements were written.
    pub(crate) metrics: MinuteThrottle,
    /// When refused reports were announced.
    pub(crate) refused: MinuteThrottle,
    pub(crate) logs: LogLimits,
}

impl Devices {
    /// Handles changes. (The target state of a device is checked with each poll.)
    pub(crate) fn invalidate(&self, effects: &[Effect]) {
        for effect in effects {
            if let Effect::DevicesGone(gone) = effect {
                for gone in gone {
                    self.states.forget(&gone.uuid);
                    self.metrics.forget(gone.id);
                    self.refused.forget(gone.id);
                }
            }
        }
    }
}
