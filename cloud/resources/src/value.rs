//! Converts a value that a client writes for a field to the value that is stored.
//!
//! Code that writes rows calls [`Field::take`]. It does not consider other fields or rows.

use std::fmt::Write as _;

use serde_json::Value;

use crate::branding::Branding;
use crate::check::or;
use crate::field::{Field, Type};

/// The maximum nesting depth of objects and arrays.
pub const MAX_JSON_DEPTH: usize = 64;

/// The stored value of a field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StoredValue {
    /// Null.
    Null,
    /// A number, the number of a linked row, or a time in milliseconds since 1970.
    Integer(i64),
    /// True or false.
    Boolean(bool),
    /// Text, a word, or JSON in its shortest form.
    Text(String),
}

/// A value that the field does not accept.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{field}` must be {requirement}, and {given} is not")]
pub struct ValueError {
    /// The field.
    pub field: &'static str,
    /// The given value, shortened to fit a message.
    pub given: String,
    /// What the field accepts.
    pub requirement: String,
}

impl Field {
    /// Converts a written value to the stored one: of the field's type, within its limits, and as its check requires.
    /// Lengths are in characters; null is accepted if the field can be null.
    ///
    /// # Errors
    /// [`ValueError`] if the value is not accepted.
    pub fn take(&self, given: &Value, branding: &Branding) -> Result<StoredValue, ValueError> {
        self.stored_value(given, branding)
            .ok_or_else(|| self.refusal(given, self.requirement(branding)))
    }

    pub(crate) fn refusal(&self, given: &Value, requirement: String) -> ValueError {
        ValueError {
            field: self.name,
            given: shown(given),
            requirement,
        }
    }

    /// Describes in words what the field accepts.
    #[must_use]
    pub fn requirement(&self, branding: &Branding) -> String {
        let mut words = match self.kind {
            Type::Integer | Type::BigInteger => "a whole number".to_owned(),
            Type::Boolean => "true or false".to_owned(),
            Type::Text { min, max } => {
                let what = match self.check {
                    Some(check) => check.requirement(branding),
                    None => "text".to_owned(),
                };
                match (min, min == max) {
                    (_, true) => what,
                    (0, _) => format!("{what}, of at most {max} characters"),
                    _ => format!("{what}, of {min} to {max} characters"),
                }
            }
            Type::Word(words) => or(words.iter().map(|word| format!("`{word}`"))),
            Type::Timestamp => {
                "a time in ISO 8601 or in milliseconds since 1970, of the years 1 to 9999"
                    .to_owned()
            }
            Type::Json { max } => {
                format!("an object or array of at most {max} bytes and {MAX_JSON_DEPTH} levels")
            }
            Type::JsonText { max } => format!(
                "the text of an object or array of at most {max} bytes and {MAX_JSON_DEPTH} levels"
            ),
            Type::Link { to, .. } => format!("the number of a row of `{to}`"),
        };
        if self.nullable {
            words.push_str(", or null");
        }
        words
    }

    fn stored_value(&self, given: &Value, branding: &Branding) -> Option<StoredValue> {
        if given.is_null() {
            return self.nullable.then_some(StoredValue::Null);
        }
        match self.kind {
            Type::Integer | Type::BigInteger => integer(given).map(StoredValue::Integer),
            Type::Boolean => boolean(given).map(StoredValue::Boolean),
            Type::Text { min, max } => self.text(given.as_str()?, min, max, branding),
            Type::Word(words) => {
                let word = words.iter().find(|word| **word == given)?;
                Some(StoredValue::Text((*word).to_owned()))
            }
            Type::Timestamp => timestamp(given).map(StoredValue::Integer),
            Type::Json { max } => json(given, max),
            Type::JsonText { max } => match given {
                Value::String(text) => json(&serde_json::from_str(text).ok()?, max),
                parsed => json(parsed, max),
            },
            Type::Link { .. } => {
                let number = given.get("__id").unwrap_or(given);
                integer(number)
                    .filter(|id| *id > 0)
                    .map(StoredValue::Integer)
            }
        }
    }

    fn text(&self, text: &str, min: usize, max: usize, branding: &Branding) -> Option<StoredValue> {
        // PostgreSQL cannot store this character, so SQLite does not either.
        if text.contains('\0') || !has_characters(text, min, max) {
            return None;
        }
        let Some(check) = self.check else {
            return Some(StoredValue::Text(text.to_owned()));
        };
        // The result of a check must meet the length limits as well.
        let text = check.apply(text, branding)?;
        has_characters(&text, min, max).then(|| StoredValue::Text(text.into_owned()))
    }
}

fn has_characters(text: &str, min: usize, max: usize) -> bool {
    // A character has at most four bytes, so most texts need no counting.
    if text.len() <= max && min == 0 {
        return true;
    }
    (min..=max).contains(&text.chars().count())
}

/// Reads a whole number, also from a text of digits.
fn integer(given: &Value) -> Option<i64> {
    match given {
        Value::Number(number) => number.as_i64().or_else(|| whole(number.as_f64()?)),
        Value::String(text) => {
            // `parse` also accepts a leading plus sign.
            let digits = text.strip_prefix('-').unwrap_or(text);
            let plain = digits.starts_with(|it: char| it.is_ascii_digit());
            text.parse().ok().filter(|_| plain)
        }
        _ => None,
    }
}

/// Converts a number with a fraction of zero (`5.0`), if `f64` is exact at that size.
fn whole(number: f64) -> Option<i64> {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    #[expect(
        clippy::cast_possible_truncation,
        reason = "it is a whole number within 53 bits"
    )]
    (number.fract() == 0.0 && number.abs() <= EXACT).then_some(number as i64)
}

fn boolean(given: &Value) -> Option<bool> {
    match given {
        Value::Bool(given) => Some(*given),
        Value::Number(number) => match number.as_f64()? {
            0.0 => Some(false),
            1.0 => Some(true),
            _ => None,
        },
        Value::String(text) => match text.as_str() {
            "true" | "1" => Some(true),
            "false" | "0" => Some(false),
            _ => None,
        },
        _ => None,
    }
}

/// Reads a time in ISO 8601 (in UTC if it has no offset), or milliseconds since 1970, and returns the latter.
fn timestamp(given: &Value) -> Option<i64> {
    let milliseconds = match given {
        #[expect(
            clippy::cast_possible_truncation,
            reason = "saturates, and is held to bounds after"
        )]
        Value::Number(number) => number
            .as_i64()
            .or_else(|| number.as_f64().map(|it| it.trunc() as i64))?,
        Value::String(text) => moment(text)?,
        _ => return None,
    };
    /// From the first moment of the year 1 to the last one of 9999: the years that ISO 8601 writes with four digits.
    const YEARS: std::ops::RangeInclusive<i64> = -62_135_596_800_000..=253_402_300_799_999;
    YEARS.contains(&milliseconds).then_some(milliseconds)
}

/// Parses a time in ISO 8601 to milliseconds since 1970. (A `jiff::Timestamp` ends a day before the year 9999 does, and
/// `9999-12-31T23:59:59Z` is how clients write "never".) Without an offset it is in UTC, and a date alone means its
/// first moment.
#[must_use]
pub fn moment(text: &str) -> Option<i64> {
    // No format of a time is that long.
    if text.len() > 64 {
        return None;
    }
    let pieces = jiff::fmt::temporal::Pieces::parse(text).ok()?;
    if pieces.time_zone_annotation().is_some() {
        return None;
    }
    let time = pieces.time().unwrap_or_default();
    let since = jiff::civil::datetime(1970, 1, 1, 0, 0, 0, 0);
    let local = pieces.date().to_datetime(time).duration_since(since);
    let offset = pieces.to_numeric_offset().unwrap_or(jiff::tz::Offset::UTC);
    let utc = local.as_millis() - i128::from(offset.seconds()) * 1000;
    i64::try_from(utc).ok()
}

/// Reads an object or array, and returns its shortest form.
fn json(given: &Value, max: usize) -> Option<StoredValue> {
    if !(given.is_object() || given.is_array()) || is_deeper_than(given, MAX_JSON_DEPTH) {
        return None;
    }
    let text = given.to_string();
    (text.len() <= max).then_some(StoredValue::Text(text))
}

fn is_deeper_than(value: &Value, levels: usize) -> bool {
    let Some(below) = levels.checked_sub(1) else {
        return value.is_object() || value.is_array();
    };
    match value {
        Value::Array(items) => items.iter().any(|item| is_deeper_than(item, below)),
        Value::Object(fields) => fields.values().any(|field| is_deeper_than(field, below)),
        _ => false,
    }
}

/// Formats a value for a message: in backticks, and shortened.
fn shown(given: &Value) -> String {
    const MOST: usize = 60;
    match given {
        Value::Array(_) => "an array".into(),
        Value::Object(_) => "an object".into(),
        Value::String(text) => {
            let mut quoted = String::from("`\"");
            let mut rest = text.chars();
            for one in rest.by_ref().take(MOST) {
                let _ = write!(quoted, "{}", one.escape_debug());
            }
            quoted.push_str(if rest.next().is_some() {
                "…\"`"
            } else {
                "\"`"
            });
            quoted
        }
        plain => format!("`{plain}`"),
    }
}
