//! Takes a value that a client writes for a field, and makes it what is kept.
//!
//! Whoever writes rows calls [`Field::take`]. It does not look at other fields or rows.

use std::fmt::Write as _;

use serde_json::Value;

use crate::branding::Branding;
use crate::check::or;
use crate::field::{Field, Type};

/// How deep objects and arrays may be in each other.
pub const MAX_JSON_DEPTH: usize = 64;

/// What is kept for a field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StoredValue {
    /// Nothing.
    Null,
    /// A number, the number of a linked row, or a time in milliseconds since 1970.
    Integer(i64),
    /// True or false.
    Boolean(bool),
    /// Text, a word, or JSON in its shortest form.
    Text(String),
}

/// A value is none of the field's.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{field}` must be {wanted}, and {given} is not")]
pub struct ValueError {
    /// The field.
    pub field: &'static str,
    /// What was given, of it as much as fits a message.
    pub given: String,
    /// What is taken.
    pub wanted: String,
}

impl Field {
    /// What is kept of a value that is written: of the type of the field, in its limits, and what its check
    /// asks for. Lengths are in characters; null is taken where the field can be null.
    ///
    /// # Errors
    /// [`ValueError`] where it is not that.
    pub fn take(&self, given: &Value, branding: &Branding) -> Result<StoredValue, ValueError> {
        self.stored_value(given, branding)
            .ok_or_else(|| self.refusal(given, self.wanted(branding)))
    }

    pub(crate) fn refusal(&self, given: &Value, wanted: String) -> ValueError {
        ValueError {
            field: self.name,
            given: shown(given),
            wanted,
        }
    }

    /// What it takes, in words.
    #[must_use]
    pub fn wanted(&self, branding: &Branding) -> String {
        let mut words = match self.kind {
            Type::Integer | Type::BigInteger => "a whole number".to_owned(),
            Type::Boolean => "true or false".to_owned(),
            Type::Text { min, max } => {
                let what = match self.check {
                    Some(check) => check.wanted(branding),
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
        // PostgreSQL keeps no such character, so SQLite does not either.
        if text.contains('\0') || !has_characters(text, min, max) {
            return None;
        }
        let Some(check) = self.check else {
            return Some(StoredValue::Text(text.to_owned()));
        };
        // What a check makes of a text is held to its length as well.
        let text = check.of(text, branding)?;
        has_characters(&text, min, max).then(|| StoredValue::Text(text.into_owned()))
    }
}

fn has_characters(text: &str, min: usize, max: usize) -> bool {
    // A character has four bytes at most, so most texts need no counting.
    if text.len() <= max && min == 0 {
        return true;
    }
    (min..=max).contains(&text.chars().count())
}

/// A whole number, also as text of digits.
fn integer(given: &Value) -> Option<i64> {
    match given {
        Value::Number(number) => number.as_i64().or_else(|| whole(number.as_f64()?)),
        Value::String(text) => {
            // `parse` alone would take a leading plus sign.
            let digits = text.strip_prefix('-').unwrap_or(text);
            let plain = digits.starts_with(|it: char| it.is_ascii_digit());
            text.parse().ok().filter(|_| plain)
        }
        _ => None,
    }
}

/// A number with a fraction of zero (`5.0`), where a `f64` still tells it from its neighbours.
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

/// Milliseconds since 1970 of a time in ISO 8601 (in UTC where it says no distance from that), or those
/// milliseconds themselves.
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
    /// The first moment of the year 1, and the last one of 9999: what ISO 8601 writes with four digits.
    const YEARS: std::ops::RangeInclusive<i64> = -62_135_596_800_000..=253_402_300_799_999;
    YEARS.contains(&milliseconds).then_some(milliseconds)
}

/// Milliseconds since 1970 of a time in ISO 8601. (A `jiff::Timestamp` ends a day before the year 9999 does,
/// and `9999-12-31T23:59:59Z` is how clients write "never".) Without an offset it is in UTC, and a day alone is
/// its first moment.
#[must_use]
pub fn moment(text: &str) -> Option<i64> {
    // No form of a time is as long.
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

/// An object or array in its shortest form.
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

/// A value as a message shows it: in backticks, and not much of it.
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
