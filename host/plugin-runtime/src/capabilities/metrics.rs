//! `wit/metrics.wit`: the plugin's own gauges and counters.

use plugin_protocol::{CounterAdd, GaugeSet};

use crate::bindings::platform::supervisor::metrics::{self, Label, MetricsError};
use crate::guest::{Answer, Guest, GuestAccess, GuestData, host};

impl metrics::Host for &mut Guest {}

impl metrics::HostWithStore<Guest> for GuestData {
    async fn set_gauge(
        access: &GuestAccess,
        name: String,
        labels: Vec<Label>,
        value: f64,
    ) -> Answer<(), MetricsError> {
        let call = GaugeSet {
            name,
            labels: pairs(labels),
            value,
        };
        host(access).try_ask(call).await
    }

    async fn add_to_counter(
        access: &GuestAccess,
        name: String,
        labels: Vec<Label>,
        increment: u64,
    ) -> Answer<(), MetricsError> {
        let call = CounterAdd {
            name,
            labels: pairs(labels),
            increment,
        };
        host(access).try_ask(call).await
    }
}

fn pairs(labels: Vec<Label>) -> Vec<(String, String)> {
    labels
        .into_iter()
        .map(|label| (label.name, label.value))
        .collect()
}

mirror! { one way enum plugin_protocol::MetricsError, MetricsError { Invalid(why), TooMany(why) } }
