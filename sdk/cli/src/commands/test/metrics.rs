//! The gauges and counters that the plugin of a test reports with the capability `metrics`.
//!
//! ```toml
//! [[metrics]]
//! gauges = { 'level{tank="north"}' = 0.4 }    # these series have these values; others may have any
//! counters = { readings_total = 1 }
//! ```

use std::collections::BTreeMap;

use anyhow::{Result, ensure};
use plugin_test_host::{PluginMetricValue, RunningHost};
use serde::Deserialize;

/// The series that the plugin must have reported at this point, with their values.
#[derive(derive_more::Display)]
#[display("metrics")]
pub(crate) struct TestMetrics {
    /// The line at which it begins in its file, counted from 1.
    pub(crate) line: usize,
    series: Vec<Series>,
}

/// The series as `GET /metrics` shows it, but without the plugin's name, and its value.
type Series = (String, PluginMetricValue);

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct MetricsToml {
    #[serde(default)]
    gauges: BTreeMap<String, f64>,
    #[serde(default)]
    counters: BTreeMap<String, u64>,
}

impl TestMetrics {
    pub(super) fn new(written: MetricsToml, line: usize) -> Result<TestMetrics> {
        let gauges = written.gauges.into_iter();
        let gauges = gauges.map(|(name, value)| (name, PluginMetricValue::Gauge(value)));
        let counters = written.counters.into_iter();
        let counters = counters.map(|(name, value)| (name, PluginMetricValue::Counter(value)));
        let series: Vec<Series> = gauges.chain(counters).collect();
        ensure!(
            !series.is_empty(),
            "it must have a series in `gauges` or `counters`"
        );
        Ok(TestMetrics { line, series })
    }

    /// Reports the series that do not have the expected values.
    pub(crate) fn differences(&self, host: &RunningHost) -> Vec<String> {
        let report = host.report();
        let plugin = report[0]["name"].as_str().unwrap_or_default();
        self.differences_from(&host.series(plugin))
    }

    fn differences_from(&self, reported: &[Series]) -> Vec<String> {
        let differences = self.series.iter().filter_map(|(name, expected)| {
            let found = reported.iter().find(|(other, _)| other == name);
            let found = match found {
                Some((_, value)) if value == expected => return None,
                Some((_, value)) if value.kind() == expected.kind() => {
                    format!("it is {}", number(*value))
                }
                Some((_, value)) => format!("it is a {}", value.kind()),
                None => missing(name, reported),
            };
            let (kind, expected) = (expected.kind(), number(*expected));
            Some(format!(
                "expected the {kind} {name} to be {expected}, but {found}"
            ))
        });
        differences.collect()
    }
}

/// Says that a series is missing, and which others its metric has: most often a label differs.
fn missing(name: &str, reported: &[Series]) -> String {
    let metric = metric_of(name);
    let others = reported.iter().map(|(other, _)| other.as_str());
    let others: Vec<&str> = others.filter(|other| metric_of(other) == metric).collect();
    if others.is_empty() {
        "the plugin has not reported it".to_owned()
    } else {
        format!("the plugin has reported only {}", others.join(", "))
    }
}

/// Returns the name of a series without its labels.
fn metric_of(series: &str) -> &str {
    series.split_once('{').map_or(series, |(metric, _)| metric)
}

fn number(value: PluginMetricValue) -> String {
    match value {
        PluginMetricValue::Gauge(value) => value.to_string(),
        PluginMetricValue::Counter(value) => value.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn metrics(text: &str) -> Result<TestMetrics> {
        TestMetrics::new(toml::from_str(text)?, 1)
    }

    #[test]
    fn metrics_that_compare_nothing_are_refused() {
        for (text, expected) in [
            ("", "it must have a series in `gauges` or `counters`"),
            (
                "gauges = {}\ncounters = {}",
                "it must have a series in `gauges` or `counters`",
            ),
            ("level = 1", "unknown field `level`"),
            ("gauges = { level = \"1\" }", "expected f64"),
            ("counters = { calls = -1 }", "expected u64"),
            ("counters = { calls = 1.5 }", "expected u64"),
        ] {
            let error = format!("{:#}", metrics(text).err().unwrap());
            assert!(error.contains(expected), "{text}: {error}");
        }
    }

    #[test]
    fn only_the_series_of_the_file_are_compared_by_kind_and_value() {
        let gauge = |name: &str, value| (name.to_owned(), PluginMetricValue::Gauge(value));
        let counter = |name: &str, value| (name.to_owned(), PluginMetricValue::Counter(value));
        let reported = [
            gauge("level{tank=\"north\"}", 0.4),
            gauge("level{tank=\"south\"}", 2.0),
            gauge("level_max", 1.0),
            counter("readings_total", u64::MAX),
            counter("refills_total", 3),
        ];
        for (text, expected) in [
            ("gauges = { 'level{tank=\"north\"}' = 0.4 }", ""),
            ("gauges = { 'level{tank=\"south\"}' = 2 }", ""),
            ("counters = { refills_total = 3 }", ""),
            (
                "gauges = { 'level{tank=\"north\"}' = 0.5 }",
                "expected the gauge level{tank=\"north\"} to be 0.5, but it is 0.4",
            ),
            (
                "counters = { readings_total = 3 }",
                "expected the counter readings_total to be 3, but it is 18446744073709551615",
            ),
            (
                "gauges = { refills_total = 3 }",
                "expected the gauge refills_total to be 3, but it is a counter",
            ),
            (
                "gauges = { level = 0.4 }",
                "expected the gauge level to be 0.4, but the plugin has reported only \
                 level{tank=\"north\"}, level{tank=\"south\"}",
            ),
            (
                "gauges = { pressure = 1 }\ncounters = { drains_total = 0 }",
                "expected the gauge pressure to be 1, but the plugin has not reported it\n\
                 expected the counter drains_total to be 0, but the plugin has not reported it",
            ),
        ] {
            let differences = metrics(text).unwrap().differences_from(&reported);
            assert_eq!(differences.join("\n"), expected, "{text}");
        }
    }
}
