//! The plugin's own gauges and counters, which `GET /metrics` of the device shows. Capability `metrics`.
//!
//! The metric `level` of the plugin `tank-gauge` is called `plugin_tank_gauge__level` there. The supervisor keeps its
//! values until the plugin's file or its grants change, or the supervisor restarts; then counters begin at 0 again.
//!
//! A metric's name is a lower-case letter followed by up to 63 lower-case letters, digits and single `_`; a label's
//! name has the same form and at most 32 characters. A metric has at most 4 labels, whose values are at most 128 bytes
//! of text without control characters. A plugin has at most 100 series: a series is a metric's name with the names and
//! values of its labels.
//!
//! ```no_run
//! # async fn handler() -> Result<(), supervisor_sdk::Error> {
//! use supervisor_sdk::metrics;
//!
//! metrics::set_gauge("level", &[("tank", "north")], 0.75).await?;
//! metrics::add_to_counter("refills_total", &[], 1).await?;
//! # Ok(())
//! # }
//! ```

use crate::bindings::capabilities::platform::supervisor::metrics as wit;
use crate::capability_error::capability_error;

/// Sets the gauge `name` with these labels, which are pairs of a name and a value, to a finite number.
///
/// # Errors
/// [`Error::Invalid`] or [`Error::TooMany`]; then nothing has changed.
pub async fn set_gauge(name: &str, labels: &[(&str, &str)], value: f64) -> Result<(), Error> {
    Ok(wit::set_gauge(name.to_owned(), self::labels(labels), value).await?)
}

/// Adds to the counter `name` with these labels, which are pairs of a name and a value. It begins at 0; by convention
/// its name ends in `_total`.
///
/// # Errors
/// [`Error::Invalid`] or [`Error::TooMany`]; then nothing has changed.
pub async fn add_to_counter(
    name: &str,
    labels: &[(&str, &str)],
    increment: u64,
) -> Result<(), Error> {
    Ok(wit::add_to_counter(name.to_owned(), self::labels(labels), increment).await?)
}

fn labels(pairs: &[(&str, &str)]) -> Vec<wit::Label> {
    pairs
        .iter()
        .map(|&(name, value)| wit::Label {
            name: name.to_owned(),
            value: value.to_owned(),
        })
        .collect()
}

capability_error! {
    /// The reason why the supervisor refused a value.
    ///
    /// As a [`crate::Error`]: 500, since it is the plugin's own mistake.
    wit::MetricsError {
        /// A name, a label or a value is invalid, or the metric is of the other kind; the text says which.
        Invalid from Invalid answers internal,
        /// The plugin already has the maximum number of series.
        TooMany from TooMany answers internal,
    }
}
