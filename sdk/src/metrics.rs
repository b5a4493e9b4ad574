//! Gauges and counters of the plugin's own, which `GET /metrics` of the device shows. Capability `metrics`.
//!
//! The metric `level` of the plugin `tank-gauge` is called `plugin_tank_gauge__level` there. The supervisor keeps its
//! values until the plugin's file or its grants change, or the supervisor starts anew; counters then begin at 0 again.
//!
//! A metric's name is a lower-case letter and up to 63 of lower-case letters, digits and single `_`; so is a label's
//! name, of at most 32. A metric has at most 4 labels, whose values are at most 128 bytes of text without control
//! characters. A plugin has at most 100 series: a series is a metric's name with the names and values of its labels.
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

use std::fmt;

use crate::bindings::capabilities::platform::supervisor::metrics as wit;

/// Sets the gauge `name` with these labels, which are pairs of a name and a value, to a finite number.
///
/// # Errors
/// [`Error::Invalid`] or [`Error::TooMany`]; then nothing was changed.
pub async fn set_gauge(name: &str, labels: &[(&str, &str)], value: f64) -> Result<(), Error> {
    Ok(wit::set_gauge(name.to_owned(), self::labels(labels), value).await?)
}

/// Adds to the counter `name` with these labels, which are pairs of a name and a value. It begins at 0, and its name
/// ends in `_total`, by custom.
///
/// # Errors
/// [`Error::Invalid`] or [`Error::TooMany`]; then nothing was changed.
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

/// Why the supervisor refused a value.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// A name, a label or a value is not valid, or the metric is of the other kind; the text says which.
    Invalid(String),
    /// The plugin has as many series as it may have.
    TooMany(String),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Invalid(text) | Self::TooMany(text) => f.write_str(text),
        }
    }
}

impl std::error::Error for Error {}

impl From<wit::MetricsError> for Error {
    fn from(error: wit::MetricsError) -> Self {
        match error {
            wit::MetricsError::Invalid(text) => Self::Invalid(text),
            wit::MetricsError::TooMany(text) => Self::TooMany(text),
        }
    }
}

/// 500: the plugin's own mistake.
impl From<Error> for crate::Error {
    fn from(error: Error) -> Self {
        Self::internal(error.to_string())
    }
}
