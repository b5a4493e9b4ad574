//! Counters since the start of the supervisor, for `GET /metrics`.

use std::time::Duration;

use crate::Moment;

/// What the reconciler has counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ReconcilerStats {
    /// Comparisons of the device with its target.
    pub passes: u64,
    /// Steps that failed.
    pub step_failures: u64,
    /// When the target was last found reached.
    pub last_reached: Option<Moment>,
    /// Images that were downloaded.
    pub downloads: u64,
    /// Downloads that failed.
    pub download_failures: u64,
    /// Images that are being downloaded now.
    pub downloads_running: u64,
    /// Services whose update locks the supervisor holds now.
    pub locks_held: u64,
}

/// How a plugin has fared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PluginStats {
    /// The plugin's name.
    pub name: String,
    /// Calls of the plugin.
    pub calls: u64,
    /// Calls that failed through the plugin's fault.
    pub faults: u64,
    /// The time that all calls took until their answers began.
    pub time: Duration,
}
