//! Fields that a plugin adds to the device's report to its cloud (`wit/report.wit`). All of it is text from the plugin,
//! which people read in the cloud's pages and in terminals: it is limited in number and length, and each text is one
//! line that reads as it is written.

use std::collections::BTreeMap;
use std::sync::Arc;

use device_types::{PluginField, PluginFieldValue};
use parking_lot::Mutex;
use plugin_protocol::text::is_plain;
use plugin_protocol::wit::report::{FieldValue, ReportError};
use plugin_protocol::{FIELD_NAME, FIELD_TEXT, FIELD_UNIT};
use serde_json::Number;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::bounds::{FIELDS, FIELDS_OF_ALL};

/// The limit up to which each whole number has its own value in 64 bits of floating point: 2^53.
const WHOLE: f64 = 9_007_199_254_740_992.0;

/// How many fields all plugins together can have. Clones share it.
#[derive(Debug, Clone)]
pub(crate) struct FieldBudget(Arc<Semaphore>);

impl Default for FieldBudget {
    fn default() -> Self {
        FieldBudget(Arc::new(Semaphore::new(FIELDS_OF_ALL)))
    }
}

/// The fields of one version of a plugin.
#[derive(Debug)]
pub(crate) struct PluginFields {
    by_name: Mutex<BTreeMap<String, Field>>,
    budget: FieldBudget,
}

#[derive(Debug)]
struct Field {
    value: PluginFieldValue,
    unit: Option<String>,
    /// Its place among those of all plugins, which is returned with it.
    _place: OwnedSemaphorePermit,
}

impl PluginFields {
    /// Creates an empty set. `budget` is that of all plugins.
    pub(crate) fn new(budget: &FieldBudget) -> Self {
        PluginFields {
            by_name: Mutex::default(),
            budget: budget.clone(),
        }
    }

    pub(crate) fn set(
        &self,
        name: String,
        value: FieldValue,
        unit: Option<String>,
    ) -> Result<(), ReportError> {
        check_name(&name)?;
        if let Some(unit) = &unit {
            check_text("unit", &name, unit, 1, FIELD_UNIT)?;
        }
        let value = checked_value(&name, value)?;
        let mut by_name = self.by_name.lock();
        if let Some(field) = by_name.get_mut(&name) {
            (field.value, field.unit) = (value, unit);
            return Ok(());
        }
        if by_name.len() >= FIELDS {
            return Err(ReportError::TooMany(format!(
                "`{name}` is not reported: a plugin has at most {FIELDS} fields"
            )));
        }
        let place = Arc::clone(&self.budget.0).try_acquire_owned();
        let place = place.map_err(|_| {
            ReportError::TooMany(format!(
                "`{name}` is not reported: all plugins together have at most {FIELDS_OF_ALL} fields"
            ))
        })?;
        let field = Field {
            value,
            unit,
            _place: place,
        };
        by_name.insert(name, field);
        Ok(())
    }

    pub(crate) fn remove(&self, name: &str) -> Result<(), ReportError> {
        check_name(name)?;
        self.by_name.lock().remove(name);
        Ok(())
    }

    /// Returns everything that was set, sorted by name.
    pub(crate) fn all(&self) -> Vec<PluginField> {
        let by_name = self.by_name.lock();
        by_name
            .iter()
            .map(|(name, field)| PluginField {
                name: name.clone(),
                value: field.value.clone(),
                unit: field.unit.clone(),
            })
            .collect()
    }
}

fn check_name(name: &str) -> Result<(), ReportError> {
    let fits = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
    let is_valid = name.len() <= FIELD_NAME
        && name.starts_with(|first: char| first.is_ascii_lowercase())
        && name.bytes().all(fits)
        && !name.contains("__");
    if is_valid {
        return Ok(());
    }
    let excerpt: String = name.chars().take(FIELD_NAME).collect();
    Err(ReportError::Invalid(format!(
        "a field's name is a lower-case letter and at most {} of lower-case letters, digits and single `_`, unlike {excerpt:?}",
        FIELD_NAME - 1
    )))
}

fn check_text(
    what: &str,
    field: &str,
    text: &str,
    least: usize,
    most: usize,
) -> Result<(), ReportError> {
    if (least..=most).contains(&text.len()) && is_plain(text) {
        return Ok(());
    }
    Err(ReportError::Invalid(format!(
        "the {what} of the field `{field}` must be {least} to {most} bytes of text without control characters and without \
         characters that turn the direction of writing"
    )))
}

/// Returns a value in its stored form: a whole number is also one in JSON, `5` and not `5.0`.
fn checked_value(field: &str, value: FieldValue) -> Result<PluginFieldValue, ReportError> {
    Ok(match value {
        FieldValue::Text(text) => {
            check_text("text", field, &text, 0, FIELD_TEXT)?;
            PluginFieldValue::Text(text)
        }
        FieldValue::Boolean(flag) => PluginFieldValue::Boolean(flag),
        FieldValue::Number(number) if number.fract() == 0.0 && number.abs() <= WHOLE =>
        {
            #[expect(
                clippy::cast_possible_truncation,
                reason = "it is whole, and small enough"
            )]
            PluginFieldValue::Number((number as i64).into())
        }
        FieldValue::Number(number) => {
            let finite = Number::from_f64(number).ok_or_else(|| {
                ReportError::Invalid(format!(
                    "the field `{field}` must be a finite number, not {number}"
                ))
            })?;
            PluginFieldValue::Number(finite)
        }
    })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn text(text: &str) -> FieldValue {
        FieldValue::Text(text.to_owned())
    }

    fn kept(value: FieldValue) -> Option<Value> {
        let value = checked_value("level", value).ok()?;
        Some(serde_json::to_value(value).unwrap())
    }

    fn set(fields: &PluginFields, name: &str) -> Result<(), ReportError> {
        fields.set(name.to_owned(), FieldValue::Boolean(true), None)
    }

    #[test]
    fn names_are_plain_words() {
        for name in ["a", "level", "north_1", &"a".repeat(FIELD_NAME)] {
            assert!(check_name(name).is_ok(), "{name}");
        }
        let long = "a".repeat(FIELD_NAME + 1);
        for name in [
            "", "_a", "1a", "A", "a-b", "a__b", "a b", "a\n", "a.b", "a/b", "\u{e9}", "<b>", &long,
        ] {
            assert!(check_name(name).is_err(), "{name:?}");
        }
    }

    #[test]
    fn values_are_finite_numbers_flags_and_lines_of_plain_text() {
        for (value, expected) in [
            (FieldValue::Number(21.5), json!(21.5)),
            (FieldValue::Number(5.0), json!(5)),
            (FieldValue::Number(-0.0), json!(0)),
            (FieldValue::Number(1e300), json!(1e300)),
            (FieldValue::Boolean(false), json!(false)),
            (text(""), json!("")),
            (
                text("<b>open</b> & \u{5e9}"),
                json!("<b>open</b> & \u{5e9}"),
            ),
            (
                text(&"\u{e9}".repeat(FIELD_TEXT / 2)),
                json!("\u{e9}".repeat(FIELD_TEXT / 2)),
            ),
        ] {
            assert_eq!(kept(value), Some(expected));
        }
        for value in [
            FieldValue::Number(f64::NAN),
            FieldValue::Number(f64::INFINITY),
            FieldValue::Number(f64::NEG_INFINITY),
            text("two\nlines"),
            text("\u{1b}[2Jgone"),
            text("\u{202e}nepo"),
            text(&"a".repeat(FIELD_TEXT + 1)),
        ] {
            assert_eq!(kept(value.clone()), None, "{value:?}");
        }
    }

    #[test]
    fn a_plugin_has_a_bounded_number_of_fields_and_keeps_those_that_it_has() {
        let fields = PluginFields::new(&FieldBudget::default());
        for number in 0..FIELDS {
            set(&fields, &format!("f{number}")).unwrap();
        }
        assert!(matches!(set(&fields, "more"), Err(ReportError::TooMany(_))));
        let (number, unit) = (FieldValue::Number(2.0), Some("V".to_owned()));
        fields.set("f0".to_owned(), number, unit).unwrap();
        let all = fields.all();
        assert_eq!(all.len(), FIELDS);
        assert_eq!(
            (&all[0].value, all[0].unit.as_deref()),
            (&PluginFieldValue::Number(2.into()), Some("V"))
        );
        fields.remove("f1").unwrap();
        set(&fields, "more").unwrap();
    }

    #[test]
    fn all_plugins_share_what_there_is_and_give_it_back() {
        let budget = FieldBudget::default();
        let plugins: Vec<_> = (0..FIELDS_OF_ALL / FIELDS)
            .map(|_| PluginFields::new(&budget))
            .collect();
        for plugin in &plugins {
            for number in 0..FIELDS {
                set(plugin, &format!("f{number}")).unwrap();
            }
        }
        let late = PluginFields::new(&budget);
        let error = set(&late, "level").unwrap_err();
        assert!(
            error.to_string().contains("all plugins together"),
            "{error}"
        );
        drop(plugins);
        set(&late, "level").unwrap();
    }
}
