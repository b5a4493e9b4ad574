//! Prometheus' text format, version 0.0.4: a family of samples is its name, its help and its type once, then a line per
//! set of labels. Written by hand, since it is only a page: a library would keep its own registry of values that are
//! only queried on request.

use std::fmt::Write as _;
use std::time::Duration;

use axum::response::IntoResponse;
use http::header::{CONTENT_TYPE, HeaderValue};

use crate::message::Response;

/// The media type of Prometheus' text.
pub(super) const MEDIA_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// A page of metrics.
#[derive(Default)]
pub(super) struct Exposition(String);

/// The family to which samples are added.
pub(super) struct Family<'a> {
    page: &'a mut String,
    name: &'a str,
}

impl Exposition {
    pub(super) fn counter<'a>(&'a mut self, name: &'a str, help: &str) -> Family<'a> {
        self.family(name, help, "counter")
    }

    pub(super) fn gauge<'a>(&'a mut self, name: &'a str, help: &str) -> Family<'a> {
        self.family(name, help, "gauge")
    }

    pub(super) fn histogram<'a>(&'a mut self, name: &'a str, help: &str) -> Family<'a> {
        self.family(name, help, "histogram")
    }

    /// Begins a family of the Prometheus type `kind`. Neither the name nor the help is escaped.
    pub(super) fn family<'a>(&'a mut self, name: &'a str, help: &str, kind: &str) -> Family<'a> {
        // Writing to a String cannot fail, here and below.
        let _ = write!(self.0, "# HELP {name} {help}\n# TYPE {name} {kind}\n");
        Family {
            page: &mut self.0,
            name,
        }
    }
}

impl IntoResponse for Exposition {
    fn into_response(self) -> Response {
        let media_type = HeaderValue::from_static(MEDIA_TYPE);
        ([(CONTENT_TYPE, media_type)], self.0).into_response()
    }
}

impl Family<'_> {
    pub(super) fn value(&mut self, labels: &[(&str, &str)], value: u64) {
        self.sample("", labels, format_args!("{value}"));
    }

    pub(super) fn seconds(&mut self, labels: &[(&str, &str)], value: Duration) {
        self.sample("", labels, format_args!("{}", value.as_secs_f64()));
    }

    /// Adds a point in time, in milliseconds since the epoch.
    pub(super) fn milliseconds(&mut self, labels: &[(&str, &str)], value: i64) {
        let (seconds, rest) = (value.div_euclid(1000), value.rem_euclid(1000));
        self.sample("", labels, format_args!("{seconds}.{rest:03}"));
    }

    /// Adds a sample whose name is the family's with `suffix`.
    pub(super) fn sample(
        &mut self,
        suffix: &str,
        labels: &[(&str, &str)],
        value: std::fmt::Arguments<'_>,
    ) {
        self.page.push_str(self.name);
        self.page.push_str(suffix);
        for (place, (name, value)) in labels.iter().enumerate() {
            self.page.push(if place == 0 { '{' } else { ',' });
            let _ = write!(self.page, "{name}=\"");
            escape(self.page, value);
            self.page.push('"');
        }
        if !labels.is_empty() {
            self.page.push('}');
        }
        let _ = writeln!(self.page, " {value}");
    }
}

fn escape(page: &mut String, value: &str) {
    for letter in value.chars() {
        match letter {
            '\\' => page.push_str("\\\\"),
            '"' => page.push_str("\\\""),
            '\n' => page.push_str("\\n"),
            other => page.push(other),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_family_has_its_type_once_and_its_labels_escaped() {
        let mut page = Exposition::default();
        let mut family = page.counter("requests_total", "All of them.");
        family.value(&[], 3);
        family.value(&[("route", "/a\"b\\c\nd"), ("status", "200")], 4);
        page.gauge("up_seconds", "Since the start.")
            .seconds(&[], Duration::from_millis(1500));
        page.gauge("at_seconds", "A moment.")
            .milliseconds(&[], 1_700_000_000_023);
        assert_eq!(
            page.0,
            "# HELP requests_total All of them.\n# TYPE requests_total counter\nrequests_total 3\n\
             requests_total{route=\"/a\\\"b\\\\c\\nd\",status=\"200\"} 4\n\
             # HELP up_seconds Since the start.\n# TYPE up_seconds gauge\nup_seconds 1.5\n\
             # HELP at_seconds A moment.\n# TYPE at_seconds gauge\nat_seconds 1700000000.023\n"
        );
    }
}
