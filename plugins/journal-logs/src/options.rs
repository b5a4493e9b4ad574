//! The fields of the body. A field of a wrong type is an error that names the field; so is a text that
//! could be mistaken for an option (docs/spec/device.md#journal-logs).

use serde::Deserialize;
use serde::de::{Deserializer, Error as _};
use serde_json::Value;
use supervisor_sdk::{journal, lenient};

/// The longest text, in bytes: the host's own limit.
const LONGEST: usize = 1024;
/// How much of a refused value is shown, in characters.
const SHOWN: usize = 80;

/// The body of the request.
#[derive(Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct JournalRequest {
    #[serde(deserialize_with = "switch")]
    all: bool,
    #[serde(deserialize_with = "switch")]
    follow: bool,
    #[serde(deserialize_with = "count")]
    count: Option<u64>,
    #[serde(deserialize_with = "text")]
    unit: Option<String>,
    #[serde(deserialize_with = "text")]
    container_id: Option<String>,
    #[serde(deserialize_with = "text")]
    format: Option<String>,
    #[serde(deserialize_with = "time")]
    since: Option<String>,
    #[serde(deserialize_with = "time")]
    until: Option<String>,
}

impl JournalRequest {
    pub(crate) fn options(self) -> journal::Options {
        journal::Options {
            all: self.all,
            follow: self.follow,
            unit: self.unit,
            identifier: self.container_id,
            count: self.count,
            since: self.since,
            until: self.until,
            format: self.format,
        }
    }
}

/// Reads a boolean with the device API's usual values for true (`true`, `1`, `"on"`, ...); arrays and
/// objects are refused.
fn switch<'de, D: Deserializer<'de>>(deserializer: D) -> Result<bool, D::Error> {
    match Value::deserialize(deserializer)? {
        value @ (Value::Array(_) | Value::Object(_)) => Err(wrong("a boolean", &value)),
        value => lenient::truthy(value).map_err(D::Error::custom),
    }
}

/// Reads a whole number, also from text; one that is not above zero is ignored.
fn count<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    let value = Value::deserialize(deserializer)?;
    if is_absent(&value) {
        return Ok(None);
    }
    match lenient::int(value.clone()).map_err(D::Error::custom)? {
        Some(number) => Ok(u64::try_from(number).ok().filter(|number| *number > 0)),
        None => Err(wrong("a whole number", &value)),
    }
}

fn text<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    match bounded(deserializer)? {
        Some(text) if text.starts_with('-') => {
            Err(D::Error::custom("it begins with `-`, as only options do"))
        }
        text => Ok(text),
    }
}

/// Reads a time. A relative one, such as `-1h`, begins like an option, but a digit follows.
fn time<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    match bounded(deserializer)? {
        Some(text) if is_option(&text) => Err(D::Error::custom(
            "it begins with `-`, as only options do, and times relative to now, such as `-1h`",
        )),
        text => Ok(text),
    }
}

fn is_option(text: &str) -> bool {
    let rest = text.strip_prefix('-');
    rest.is_some_and(|rest| !rest.starts_with(|first: char| first.is_ascii_digit()))
}

fn bounded<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    match Value::deserialize(deserializer)? {
        value if is_absent(&value) => Ok(None),
        Value::String(text) if text.len() > LONGEST => Err(D::Error::custom(format_args!(
            "it is longer than {LONGEST} bytes"
        ))),
        Value::String(text) if text.contains('\0') => {
            Err(D::Error::custom("it contains a zero byte"))
        }
        Value::String(text) => Ok(Some(text)),
        value => Err(wrong("a string", &value)),
    }
}

fn is_absent(value: &Value) -> bool {
    value.is_null() || value.as_str() == Some("")
}

fn wrong<E: serde::de::Error>(expected: &str, value: &Value) -> E {
    let text = match value {
        Value::Array(_) => "an array".to_owned(),
        Value::Object(_) => "an object".to_owned(),
        single => {
            let text = single.to_string();
            match text.char_indices().nth(SHOWN) {
                Some((end, _)) => format!("`{}…`", &text[..end]),
                None => format!("`{text}`"),
            }
        }
    };
    E::custom(format_args!("it must be {expected}, but is {text}"))
}

#[cfg(test)]
mod fuzz_tests;
#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(body: Value) -> Result<JournalRequest, String> {
        serde_json::from_value(body).map_err(|error| error.to_string())
    }

    #[test]
    fn every_field_is_read() {
        let options = read(json!({
            "all": true, "follow": "on", "count": "5", "unit": "ssh.service", "containerId": "abc",
            "format": "json", "since": "yesterday", "until": "today", "other": [],
        }))
        .unwrap();
        let expected = journal::Options {
            all: true,
            follow: true,
            unit: Some("ssh.service".to_owned()),
            identifier: Some("abc".to_owned()),
            count: Some(5),
            since: Some("yesterday".to_owned()),
            until: Some("today".to_owned()),
            format: Some("json".to_owned()),
        };
        assert_eq!(options.options(), expected);
    }

    #[test]
    fn empty_options_are_left_out() {
        for body in [
            json!({}),
            json!({"all": false, "follow": "yes", "count": 0}),
            json!({"all": null, "count": null, "unit": null, "since": null}),
            json!({"count": -3, "unit": "", "format": ""}),
            json!({"count": "", "all": 2}),
        ] {
            assert_eq!(read(body.clone()), Ok(JournalRequest::default()), "{body}");
        }
    }

    #[test]
    fn wrong_types_are_refused() {
        for (field, value, expected) in [
            ("all", json!([]), "a boolean"),
            ("all", json!({"a": 1}), "a boolean"),
            ("follow", json!([true]), "a boolean"),
            ("count", json!("many"), "a whole number"),
            ("count", json!(1.5), "a whole number"),
            ("count", json!(true), "a whole number"),
            ("count", json!([5]), "a whole number"),
            ("unit", json!(5), "a string"),
            ("containerId", json!(true), "a string"),
            ("format", json!({}), "a string"),
            ("since", json!(1700000000), "a string"),
            ("until", json!(["today"]), "a string"),
        ] {
            let refused = read(json!({ field: value })).unwrap_err();
            assert!(refused.contains(expected), "{field}: {refused}");
        }
    }

    #[test]
    fn no_text_is_mistaken_for_an_option() {
        for field in ["unit", "containerId", "format", "since", "until"] {
            for value in ["-", "-f", "--vacuum-time=1s", "--file=/etc/passwd", "-h1"] {
                let refused = read(json!({ field: value })).unwrap_err();
                assert!(refused.contains("begins with `-`"), "{field}: {refused}");
            }
            read(json!({ field: "a".repeat(LONGEST + 1) })).unwrap_err();
            read(json!({ field: "a\u{0}b" })).unwrap_err();
        }
    }

    #[test]
    fn times_may_be_counted_back_from_now_and_nothing_else_may_look_like_it() {
        let journal_options = read(json!({ "since": "-1h", "until": "-5min" })).unwrap();
        let options = journal_options.options();
        assert_eq!(options.since.as_deref(), Some("-1h"));
        assert_eq!(options.until.as_deref(), Some("-5min"));
        for field in ["unit", "containerId", "format"] {
            read(json!({ field: "-1h" })).unwrap_err();
        }
    }

    #[test]
    fn a_refusal_shows_the_value() {
        let refused = |value: Value| read(json!({ "count": value })).unwrap_err();
        assert_eq!(
            refused(json!(1.5)),
            "it must be a whole number, but is `1.5`"
        );
        assert_eq!(
            refused(json!("many")),
            "it must be a whole number, but is `\"many\"`"
        );
        let long = refused(json!("x".repeat(500)));
        assert!(long.ends_with("…`") && long.len() < 200, "{long}");
    }
}
