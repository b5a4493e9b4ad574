//! Counters since the start of the supervisor, for `GET /metrics`.

use std::time::Duration;

use crate::Moment;

/// The counters of the reconciler.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ReconcilerStats {
    /// Comparisons of the device with its target.
    pub passes: u64,
    /// Steps that failed.
    pub step_failures: u64,
    /// The last time at which the target was found to be reached.
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

/// The counters of a plugin.
#[derive(Debug, Clone, PartialEq)]
pub struct PluginStats {
    /// The plugin's name.
    pub name: String,
    /// Calls of the plugin.
    pub calls: u64,
    /// Calls that failed because of the plugin.
    pub faults: u64,
    /// The total time until the answers of all calls began.
    pub time: Duration,
    /// The plugin's own metrics (`wit/metrics.wit`), sorted by name.
    pub metrics: Vec<PluginMetric>,
}

/// One series that a plugin reports. Its texts are valid in Prometheus' format, except that values still have to be
/// escaped.
#[derive(Debug, Clone, PartialEq)]
pub struct PluginMetric {
    /// The metric's name, without the plugin's.
    pub name: String,
    /// Pairs of a name and a value, sorted by name.
    pub labels: Vec<(String, String)>,
    /// The latest value.
    pub value: PluginMetricValue,
}

/// The value of a series.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum PluginMetricValue {
    /// A finite number that goes up and down.
    Gauge(f64),
    /// A number that only grows.
    Counter(u64),
}

impl PluginMetricValue {
    /// Returns the type in Prometheus' format.
    #[must_use]
    pub fn kind(self) -> &'static str {
        match self {
            PluginMetricValue::Gauge(_) => "gauge",
            PluginMetricValue::Counter(_) => "counter",
        }
    }

    /// Returns the value in the form for Prometheus.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "as in Prometheus")]
    pub fn as_f64(self) -> f64 {
        match self {
            PluginMetricValue::Gauge(value) => value,
            PluginMetricValue::Counter(count) => count as f64,
        }
    }
}
