//! Fields that plugins of a device add to its report (docs/spec/cloud.md#device-report-plugin-fields): `{PLUGIN:
//! {FIELD: {"value": …, "unit": …}}}`. All of it may come from somebody who has broken into a device, and people read
//! it: so number and length are limited, and each text becomes one plain line.

use std::collections::BTreeMap;

use cloud_core::answer::Refusal;
use serde_json::{Map, Number, Value};

use super::apps::{object, present, text};

/// Maximum number of fields of one device.
const MOST: usize = 64;
/// The longest name of a plugin, in bytes.
const PLUGIN: usize = 63;
/// The longest name of a field, in bytes.
const NAME: usize = 64;
/// The longest text, in characters; longer texts are cut.
const TEXT: usize = 256;
/// The longest unit, in characters; longer units are cut.
const UNIT: usize = 16;
/// Up to this number, each whole number has its own value in 64 bits of floating point: 2^53.
const WHOLE: f64 = 9_007_199_254_740_992.0;

/// All fields of a device, by plugin and name.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) struct PluginFields(pub(super) BTreeMap<(String, String), PluginField>);

/// A field, in the form of its row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PluginField {
    pub(super) value: String,
    /// A value of `device_plugin_field.value_type`.
    pub(super) value_type: &'static str,
    pub(super) unit: Option<String>,
}

impl PluginFields {
    /// Parses `plugin_fields` of version 3.
    ///
    /// # Errors
    /// 400 if a value has another type, a name is invalid, or there are too many fields.
    pub(super) fn read(plugins: &Value) -> Result<Self, Refusal> {
        let mut read = BTreeMap::new();
        for (plugin, fields) in object(plugins, "`plugin_fields`")? {
            if !is_plugin(plugin) {
                return Err(bad_name("a plugin", plugin));
            }
            for (name, field) in object(fields, "the fields of a plugin")? {
                if !is_name(name) {
                    return Err(bad_name("a field of a plugin", name));
                }
                if read.len() >= MOST {
                    return Err(Refusal::Wrong(format!(
                        "more than {MOST} fields of plugins"
                    )));
                }
                let field = PluginField::read(object(field, "a field of a plugin")?)?;
                read.insert((plugin.clone(), name.clone()), field);
            }
        }
        Ok(PluginFields(read))
    }
}

impl PluginField {
    fn read(field: &Map<String, Value>) -> Result<Self, Refusal> {
        let (value, value_type) = match present(field, "value") {
            Some(Value::String(text)) => (plain(text, TEXT), "text"),
            Some(Value::Number(number)) => (digits(number), "number"),
            Some(Value::Bool(flag)) => (flag.to_string(), "boolean"),
            _ => {
                return Err(Refusal::Wrong(
                    "`value` of a field of a plugin must be text, a number, true or false"
                        .to_owned(),
                ));
            }
        };
        let unit = text(field, "unit")?.map(|unit| plain(unit, UNIT));
        Ok(PluginField {
            value,
            value_type,
            unit: unit.filter(|unit| !unit.is_empty()),
        })
    }
}

/// Returns the word for a value that was read from the column.
pub(super) fn value_type(word: &str) -> &'static str {
    match word {
        "number" => "number",
        "boolean" => "boolean",
        _ => "text",
    }
}

fn bad_name(of: &str, name: &str) -> Refusal {
    let shown = plain(name, NAME);
    Refusal::Wrong(format!("`{shown}` cannot be the name of {of}"))
}

/// Whether the name follows the rules for names of plugins on devices.
fn is_plugin(name: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    (1..=PLUGIN).contains(&name.len()) && !name.starts_with('-') && name.bytes().all(fits)
}

/// Whether the name follows the rules for names of plugins' fields.
fn is_name(name: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
    (1..=NAME).contains(&name.len())
        && name.starts_with(|first: char| first.is_ascii_lowercase())
        && name.bytes().all(fits)
}

/// Returns the first characters, up to this number, without those that control a terminal, end a line, or change the
/// writing direction.
fn plain(text: &str, most: usize) -> String {
    let turns = |char: char| matches!(char, '\u{2028}' | '\u{2029}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    let plain = text
        .chars()
        .filter(|char| !char.is_control() && !turns(*char));
    plain.take(most).collect()
}

/// Formats a number in its shortest form: `5` and not `5.0`.
fn digits(number: &Number) -> String {
    match number.as_f64() {
        Some(float) if number.is_f64() && float.fract() == 0.0 && float.abs() <= WHOLE => {
            #[expect(
                clippy::cast_possible_truncation,
                reason = "it is whole, and small enough"
            )]
            let whole = float as i64;
            whole.to_string()
        }
        _ => number.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn field(field: Value) -> Option<(String, &'static str, Option<String>)> {
        let read = PluginFields::read(&json!({ "gauge": { "level": field } })).ok()?;
        let field = read.0.into_values().next()?;
        Some((field.value, field.value_type, field.unit))
    }

    #[test]
    fn values_become_text_with_their_type_and_what_does_not_fit_is_cut() {
        for (given, value, value_type, unit) in [
            (
                json!({ "value": 63.5, "unit": "%" }),
                "63.5",
                "number",
                Some("%"),
            ),
            (json!({ "value": 5.0 }), "5", "number", None),
            (json!({ "value": -0.0 }), "0", "number", None),
            (json!({ "value": 1e300 }), "1e+300", "number", None),
            (
                json!({ "value": u64::MAX }),
                "18446744073709551615",
                "number",
                None,
            ),
            (
                json!({ "value": true, "unit": null }),
                "true",
                "boolean",
                None,
            ),
            (json!({ "value": "" , "unit": "" }), "", "text", None),
            (
                json!({ "value": "a\u{0}b\u{1b}[2J\nc\u{202e}d" }),
                "ab[2Jcd",
                "text",
                None,
            ),
            (
                json!({ "value": "<b>&" , "later": [1] }),
                "<b>&",
                "text",
                None,
            ),
            (
                json!({ "value": "\u{e9}".repeat(300) }),
                &"\u{e9}".repeat(256),
                "text",
                None,
            ),
            (
                json!({ "value": 1, "unit": "u".repeat(300) }),
                "1",
                "number",
                Some("uuuuuuuuuuuuuuuu"),
            ),
        ] {
            let expected = (value.to_owned(), value_type, unit.map(str::to_owned));
            assert_eq!(field(given.clone()), Some(expected), "{given}");
        }
    }

    #[test]
    fn other_types_and_names_are_refused() {
        for given in [
            json!(null),
            json!(1),
            json!([]),
            json!({}),
            json!({ "value": null }),
            json!({ "value": [1] }),
            json!({ "value": {} }),
            json!({ "value": 1, "unit": 1 }),
        ] {
            assert_eq!(field(given.clone()), None, "{given}");
        }
        let long = "a".repeat(65);
        for name in [
            "", "A", "1a", "_a", "a b", "a-b", "a.b", "\u{e9}", "a\n", &long,
        ] {
            let fields = json!({ "gauge": { name: { "value": 1 } } });
            assert!(PluginFields::read(&fields).is_err(), "{name:?}");
        }
        for name in ["", "A", "-a", "a_b", "a/b", "\u{e9}", &long] {
            let fields = json!({ name: { "level": { "value": 1 } } });
            assert!(PluginFields::read(&fields).is_err(), "{name:?}");
        }
        for fields in [
            json!([]),
            json!("x"),
            json!({ "gauge": [] }),
            json!({ "gauge": 1 }),
        ] {
            assert!(PluginFields::read(&fields).is_err(), "{fields}");
        }
    }

    #[test]
    fn there_are_so_many_and_no_more() {
        let fields = |count: usize| {
            let fields = (0..count).map(|number| (format!("f{number}"), json!({ "value": 1 })));
            json!({ "gauge": Value::Object(fields.collect()), "empty": {} })
        };
        assert_eq!(PluginFields::read(&fields(MOST)).unwrap().0.len(), MOST);
        assert!(PluginFields::read(&fields(MOST + 1)).is_err());
        assert_eq!(
            PluginFields::read(&json!({})).unwrap(),
            PluginFields::default()
        );
    }
}
