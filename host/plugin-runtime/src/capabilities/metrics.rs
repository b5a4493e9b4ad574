//! `wit/metrics.wit`: gauges and counters of the plugin's own.

use plugin_protocol::{CounterAdd, GaugeSet, MetricsError};
use wasmtime::component::Accessor;

use crate::bindings::platform::supervisor::metrics::{self, Label};
use crate::guest::{Guest, ThisGuest, host};

impl metrics::Host for &mut Guest {}

impl metrics::HostWithStore<Guest> for ThisGuest {
    async fn set_gauge(
        accessor: &Accessor<Guest, Self>,
        name: String,
        labels: Vec<Label>,
        value: f64,
    ) -> wasmtime::Result<Result<(), metrics::MetricsError>> {
        let labels = pairs(labels);
        let call = GaugeSet {
            name,
            labels,
            value,
        };
        Ok(host(accessor).ask(call).await?.map_err(Into::into))
    }

    async fn add_to_counter(
        accessor: &Accessor<Guest, Self>,
        name: String,
        labels: Vec<Label>,
        increment: u64,
    ) -> wasmtime::Result<Result<(), metrics::MetricsError>> {
        let labels = pairs(labels);
        let call = CounterAdd {
            name,
            labels,
            increment,
        };
        Ok(host(accessor).ask(call).await?.map_err(Into::into))
    }
}

fn pairs(labels: Vec<Label>) -> Vec<(String, String)> {
    labels
        .into_iter()
        .map(|label| (label.name, label.value))
        .collect()
}

impl From<MetricsError> for metrics::MetricsError {
    fn from(error: MetricsError) -> Self {
        match error {
            MetricsError::Invalid(why) => Self::Invalid(why),
            MetricsError::TooMany(why) => Self::TooMany(why),
        }
    }
}
