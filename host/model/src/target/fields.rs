//! The checks that both forms of a target share, one function a kind of field (docs/spec/device.md#target-cloud).
//! Each returns `None` after it has noted the problem.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::{MAX_PER_RELEASE, Path, Problems};
use crate::ids::is_name;
use crate::{ImageRef, config_variables, truthy};

/// Characters of names.
const MAX_NAME: usize = 255;
/// Variables or labels of one service.
const MAX_ENTRIES: usize = 4096;

const NAME: &str =
    "a name (letters, digits, `_`, `.` and `-`, beginning with a letter or digit, at most 255)";

pub(super) fn record<'a>(
    problems: &mut Problems,
    path: &Path<'_>,
    value: Option<&'a Value>,
) -> Option<&'a Map<String, Value>> {
    match value {
        Some(Value::Object(entries)) => return Some(entries),
        Some(other) => problems.expected(path, other, "a map"),
        None => problems.missing(path, "a map"),
    }
    None
}

/// Reads a record as [`record`] does; a missing one is empty.
pub(super) fn optional_record<'a>(
    problems: &mut Problems,
    path: &Path<'_>,
    value: Option<&'a Value>,
) -> Option<&'a Map<String, Value>> {
    value.and_then(|value| record(problems, path, Some(value)))
}

/// An integer of at least 0, as a number or in digits.
pub(super) fn number(
    problems: &mut Problems,
    path: &Path<'_>,
    value: Option<&Value>,
) -> Option<u64> {
    const EXPECTED: &str = "an integer of at least 0, as a number or a string of digits";
    // 2^53 - 1: what every reader of the JSON that we answer still reads exactly.
    const LARGEST: u64 = 9_007_199_254_740_991;
    let value = match value {
        Some(value) => value,
        None => {
            problems.missing(path, EXPECTED);
            return None;
        }
    };
    let found = match value {
        // `as_f64` for numbers that are whole but written `1.0` or `1e3`.
        Value::Number(number) => number.as_u64().or_else(|| {
            number
                .as_f64()
                .filter(|float| float.fract() == 0.0 && (0.0..=LARGEST as f64).contains(float))
                .map(|float| float as u64)
        }),
        Value::String(text) if text.bytes().all(|b| b.is_ascii_digit()) => text.parse().ok(),
        _ => None,
    };
    let found = found.filter(|number| *number <= LARGEST);
    if found.is_none() {
        problems.expected(path, value, EXPECTED);
    }
    found
}

/// A text of at most 255 characters on one line.
pub(super) fn short_text(
    problems: &mut Problems,
    path: &Path<'_>,
    value: Option<&Value>,
) -> Option<String> {
    const EXPECTED: &str = "a string of at most 255 characters on one line";
    match value {
        Some(Value::String(text))
            if text.chars().count() <= MAX_NAME && !text.contains(['\n', '\r', '\0']) =>
        {
            return Some(text.clone());
        }
        Some(other) => problems.expected(path, other, EXPECTED),
        None => problems.missing(path, EXPECTED),
    }
    None
}

/// A text that parses as `T`, which is named `expected`.
pub(super) fn parsed<T: std::str::FromStr>(
    problems: &mut Problems,
    path: &Path<'_>,
    value: Option<&Value>,
    expected: &'static str,
) -> Option<T> {
    match value {
        Some(Value::String(text)) => match text.parse() {
            Ok(parsed) => return Some(parsed),
            Err(_) => problems.expected(path, &Value::String(text.clone()), expected),
        },
        Some(other) => problems.expected(path, other, expected),
        None => problems.missing(path, expected),
    }
    None
}

/// A key of a map that must be a name, as `T`.
pub(super) fn name_key<T: std::str::FromStr>(
    problems: &mut Problems,
    path: &Path<'_>,
    key: &str,
) -> Option<T> {
    let parsed = key.parse().ok();
    if parsed.is_none() {
        problems.expected(path, &Value::String(key.to_owned()), NAME);
    }
    parsed
}

pub(super) fn image(
    problems: &mut Problems,
    path: &Path<'_>,
    value: Option<&Value>,
) -> Option<ImageRef> {
    const EXPECTED: &str = "an image reference of at most 255 characters without white space";
    match value {
        Some(Value::String(text)) => match ImageRef::normalized(text) {
            Ok(image) => return Some(image),
            Err(_) => problems.expected(path, &Value::String(text.clone()), EXPECTED),
        },
        Some(other) => problems.expected(path, other, EXPECTED),
        None => problems.missing(path, EXPECTED),
    }
    None
}

/// A boolean, or a text or number that stands for one; `default` if it is left out.
pub(super) fn flag(
    problems: &mut Problems,
    path: &Path<'_>,
    value: Option<&Value>,
    default: bool,
) -> bool {
    match value {
        None | Some(Value::Null) => default,
        Some(value @ (Value::Bool(_) | Value::String(_) | Value::Number(_))) => truthy(value),
        Some(other) => {
            problems.expected(path, other, "a boolean");
            default
        }
    }
}

/// Variables of a service.
pub(super) fn environment(
    problems: &mut Problems,
    path: &Path<'_>,
    value: Option<&Value>,
) -> BTreeMap<String, String> {
    texts(problems, path, value, |key| {
        (!is_variable_name(key)).then_some("a variable name (`[A-Za-z_][A-Za-z0-9_]*`)")
    })
}

/// Labels of a service.
pub(super) fn labels(
    problems: &mut Problems,
    path: &Path<'_>,
    value: Option<&Value>,
) -> BTreeMap<String, String> {
    texts(problems, path, value, |key| {
        (!is_label_name(key))
            .then_some("a label name (printable ASCII without spaces, quotes and backticks)")
    })
}

/// The device's configuration, without prefixes and without keys that mean nothing here.
pub(super) fn config(
    problems: &mut Problems,
    path: &Path<'_>,
    value: Option<&Value>,
    prefixes: &[String],
) -> BTreeMap<String, String> {
    let all = texts(problems, path, value, |key| {
        let valid = key.len() <= MAX_NAME
            && key.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
            && key
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | ':'));
        (!valid).then_some("a configuration key (`[A-Za-z_][A-Za-z0-9_:]*`, at most 255)")
    });
    config_variables::known(all, prefixes)
}

/// Definitions of volumes or networks by name.
pub(super) fn definitions(
    problems: &mut Problems,
    path: &Path<'_>,
    value: Option<&Value>,
) -> BTreeMap<String, Map<String, Value>> {
    let Some(entries) = optional_record(problems, path, value) else {
        return BTreeMap::new();
    };
    within(problems, path, value, entries.len(), MAX_PER_RELEASE);
    let mut definitions = BTreeMap::new();
    for (name, definition) in entries.iter().take(MAX_PER_RELEASE) {
        let at = path.at(name);
        if !is_name(name) {
            problems.expected(&at, &Value::String(name.clone()), NAME);
        }
        if let Some(definition) = record(problems, &at, Some(definition)) {
            definitions.insert(name.clone(), definition.clone());
        }
    }
    definitions
}

/// Notes if a map has more entries than `limit`.
pub(super) fn within(
    problems: &mut Problems,
    path: &Path<'_>,
    value: Option<&Value>,
    len: usize,
    limit: usize,
) {
    if len > limit
        && let Some(value) = value
    {
        problems.expected(path, value, format!("at most {limit} entries"));
    }
}

pub(crate) fn is_variable_name(key: &str) -> bool {
    key.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && key.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

pub(crate) fn is_label_name(key: &str) -> bool {
    !key.is_empty()
        && key
            .chars()
            .all(|c| c.is_ascii_graphic() && !matches!(c, '"' | '\'' | '`'))
}

/// A map of strings whose keys `refuses` accepts.
fn texts(
    problems: &mut Problems,
    path: &Path<'_>,
    value: Option<&Value>,
    refuses: fn(&str) -> Option<&'static str>,
) -> BTreeMap<String, String> {
    let Some(entries) = record(problems, path, value) else {
        return BTreeMap::new();
    };
    within(problems, path, value, entries.len(), MAX_ENTRIES);
    let mut texts = BTreeMap::new();
    for (key, value) in entries.iter().take(MAX_ENTRIES) {
        let at = path.at(key);
        if let Some(expected) = refuses(key) {
            problems.expected(&at, &Value::String(key.clone()), expected);
        }
        match value {
            // No engine takes a NUL character: it ends a string in the calls below it.
            Value::String(text) if !text.contains('\0') => {
                texts.insert(key.clone(), text.clone());
            }
            other => problems.expected(&at, other, "a string without NUL characters"),
        }
    }
    texts
}
