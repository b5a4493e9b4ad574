//! Gauges and counters that a plugin reports, for `GET /metrics` (`wit/metrics.wit`). All of it is text from the
//! plugin: it is limited in number and length, and is valid in Prometheus' format unchanged.

use std::collections::BTreeMap;
use std::fmt;

use device_types::{PluginMetric, PluginMetricValue};
use parking_lot::Mutex;
use plugin_protocol::wit::metrics::{Label, MetricsError};

use crate::bounds::{LABEL_NAME, LABEL_VALUE, LABELS, METRIC_NAME, SERIES};

/// The series of one version of a plugin.
#[derive(Debug, Default)]
pub(crate) struct PluginMetrics(Mutex<BTreeMap<Series, PluginMetricValue>>);

/// A metric's name and its labels, sorted by their names.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Series {
    name: String,
    labels: Vec<(String, String)>,
}

impl Series {
    fn new(name: String, labels: Vec<Label>) -> Result<Series, MetricsError> {
        check_name("a metric's name", &name, METRIC_NAME)?;
        if labels.len() > LABELS {
            return Err(invalid(format_args!(
                "`{name}` has {} labels, but at most {LABELS} are allowed",
                labels.len()
            )));
        }
        let labels = labels.into_iter().map(|label| (label.name, label.value));
        let mut labels: Vec<(String, String)> = labels.collect();
        for (label, value) in &labels {
            check_name("a label's name", label, LABEL_NAME)?;
            if value.len() > LABEL_VALUE || value.chars().any(char::is_control) {
                return Err(invalid(format_args!(
                    "the label `{label}` of `{name}` must be at most {LABEL_VALUE} bytes of text without control \
                     characters"
                )));
            }
        }
        labels.sort();
        if let Some([(label, _), _]) = labels.array_windows().find(|[one, next]| one.0 == next.0) {
            return Err(invalid(format_args!(
                "`{name}` has the label `{label}` twice"
            )));
        }
        Ok(Series { name, labels })
    }
}

fn invalid(why: fmt::Arguments<'_>) -> MetricsError {
    MetricsError::Invalid(why.to_string())
}

/// Checks a name that Prometheus reads. On the page, `__` appears between the plugin's name and the metric's, and
/// nowhere else: so no plugin can report what looks like another's.
fn check_name(what: &str, name: &str, longest: usize) -> Result<(), MetricsError> {
    let fits = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
    let is_valid = name.len() <= longest
        && name.starts_with(|first: char| first.is_ascii_lowercase())
        && name.bytes().all(fits)
        && !name.contains("__");
    if is_valid {
        return Ok(());
    }
    let excerpt: String = name.chars().take(longest).collect();
    Err(invalid(format_args!(
        "{what} is a lower-case letter and at most {} of lower-case letters, digits and single `_`, unlike {excerpt:?}",
        longest - 1
    )))
}

impl PluginMetrics {
    /// Applies `change` to the value of a series, which begins as `start`.
    fn change(
        &self,
        series: Series,
        start: PluginMetricValue,
        change: impl FnOnce(&mut PluginMetricValue),
    ) -> Result<(), MetricsError> {
        let mut all = self.0.lock();
        let of_metric = all
            .iter()
            .find(|(other, _)| other.name == series.name)
            .map(|(_, value)| value);
        if let Some(other) = of_metric
            && other.kind() != start.kind()
        {
            return Err(invalid(format_args!(
                "`{}` is a {}, not a {}",
                series.name,
                other.kind(),
                start.kind()
            )));
        }
        if all.len() >= SERIES && !all.contains_key(&series) {
            return Err(MetricsError::TooMany(format!(
                "`{}` is not reported with these labels: a plugin has at most {SERIES} series",
                series.name
            )));
        }
        change(all.entry(series).or_insert(start));
        Ok(())
    }

    pub(crate) fn set_gauge(
        &self,
        name: String,
        labels: Vec<Label>,
        value: f64,
    ) -> Result<(), MetricsError> {
        if !value.is_finite() {
            return Err(invalid(format_args!(
                "a gauge is a finite number, not {value}"
            )));
        }
        let value = PluginMetricValue::Gauge(value);
        let series = Series::new(name, labels)?;
        self.change(series, value, |current| *current = value)
    }

    pub(crate) fn add_to_counter(
        &self,
        name: String,
        labels: Vec<Label>,
        increment: u64,
    ) -> Result<(), MetricsError> {
        let series = Series::new(name, labels)?;
        let start = PluginMetricValue::Counter(0);
        self.change(series, start, |current| {
            if let PluginMetricValue::Counter(count) = current {
                *count = count.saturating_add(increment);
            }
        })
    }

    /// Returns everything that was reported, sorted by name.
    pub(crate) fn all(&self) -> Vec<PluginMetric> {
        let all = self.0.lock();
        all.iter()
            .map(|(series, value)| PluginMetric {
                name: series.name.clone(),
                labels: series.labels.clone(),
                value: *value,
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn series(name: &str, labels: &[(&str, &str)]) -> Result<Series, MetricsError> {
        let label = |(name, value): &(&str, &str)| Label {
            name: (*name).to_owned(),
            value: (*value).to_owned(),
        };
        Series::new(name.to_owned(), labels.iter().map(label).collect())
    }

    #[test]
    fn names_are_such_as_prometheus_reads_and_no_other_plugins() {
        for name in [
            "a",
            "level",
            "refills_total",
            "a1_b2",
            &"a".repeat(METRIC_NAME),
        ] {
            assert!(
                series(name, &[("tank", "north \u{e9}\"\\")]).is_ok(),
                "{name}"
            );
        }
        let long = "a".repeat(METRIC_NAME + 1);
        for name in [
            "", "_a", "1a", "A", "a-b", "a__b", "a b", "a\n", "\u{e9}", "a{", &long,
        ] {
            assert!(series(name, &[]).is_err(), "{name}");
            assert!(series("a", &[(name, "")]).is_err(), "{name}");
        }
    }

    #[test]
    fn labels_are_bounded_and_each_is_there_once() {
        let names: Vec<String> = (0..=LABELS).map(|number| format!("l{number}")).collect();
        let labels: Vec<_> = names.iter().map(|name| (name.as_str(), "x")).collect();
        assert!(series("a", &labels[..LABELS]).is_ok());
        assert!(series("a", &labels).is_err());
        assert!(series("a", &[("b", "1"), ("b", "2")]).is_err());
        assert!(series("a", &[("b", "two\nlines")]).is_err());
        assert!(series("a", &[("b", &"x".repeat(LABEL_VALUE + 1))]).is_err());
        assert_eq!(
            series("a", &[("c", "1"), ("b", "2")]),
            series("a", &[("b", "2"), ("c", "1")])
        );
    }

    #[test]
    fn a_plugin_has_a_bounded_number_of_series_and_keeps_those_that_it_has() {
        let metrics = PluginMetrics::default();
        let set = |name: &str, value| {
            let value = PluginMetricValue::Gauge(value);
            let series = series("a", &[("name", name)]).unwrap();
            metrics.change(series, value, |current| *current = value)
        };
        for number in 0..SERIES {
            set(&number.to_string(), 0.0).unwrap();
        }
        assert!(matches!(set("more", 1.0), Err(MetricsError::TooMany(_))));
        set("0", 2.0).unwrap();
        assert_eq!(metrics.all().len(), SERIES);
        assert_eq!(metrics.all()[0].value, PluginMetricValue::Gauge(2.0));
    }

    #[test]
    fn a_metric_is_of_one_kind() {
        let metrics = PluginMetrics::default();
        let gauge = PluginMetricValue::Gauge(1.0);
        let counter = PluginMetricValue::Counter(1);
        let change = |labels: &[(&str, &str)], value| {
            metrics.change(series("a", labels).unwrap(), value, |current| {
                *current = value
            })
        };
        change(&[], gauge).unwrap();
        let error = change(&[("b", "c")], counter).unwrap_err();
        assert_eq!(
            error,
            MetricsError::Invalid("`a` is a gauge, not a counter".to_owned())
        );
        assert_eq!(metrics.all().len(), 1);
    }
}
