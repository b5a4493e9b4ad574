//! Gauges and counters that a plugin reports, for `GET /metrics`.

use plugin_protocol::wit::metrics::{Host, Label, MetricsError};

use super::InstanceCall;

impl Host for InstanceCall<'_> {
    async fn set_gauge(
        &self,
        name: String,
        labels: Vec<Label>,
        value: f64,
    ) -> Result<(), MetricsError> {
        self.plugin.metrics.set_gauge(name, labels, value)
    }

    async fn add_to_counter(
        &self,
        name: String,
        labels: Vec<Label>,
        increment: u64,
    ) -> Result<(), MetricsError> {
        let metrics = &self.plugin.metrics;
        metrics.add_to_counter(name, labels, increment)
    }
}
