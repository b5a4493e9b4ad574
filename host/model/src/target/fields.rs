//! The checks that both forms of a target share, one method for each kind of field (docs/spec/device.md#target-cloud).
//! Each returns `None` after it has recorded the problem.

use std::collections::BTreeMap;
use std::iter::Take;
use std::str::FromStr;

use serde_json::Value;
use serde_json::map::{Keys, Map};

use super::{MAX_PER_RELEASE, Path, Problems, TargetService};
use crate::ids::is_name;
use crate::{ImageId, ImageRef, ServiceId, ServiceName, config_variables, truthy};

/// The maximum length of names, in characters.
const MAX_NAME: usize = 255;
/// The maximum number of variables or labels of one service.
const MAX_ENTRIES: usize = 4096;

const NAME: &str =
    "a name (letters, digits, `_`, `.` and `-`, beginning with a letter or digit, at most 255)";

/// A value of a target, if it exists, and its place.
#[derive(Clone, Copy)]
pub(super) struct Field<'a> {
    pub(super) path: Path<'a>,
    pub(super) value: Option<&'a Value>,
}

/// A map of a target, and its place.
pub(super) struct Record<'a> {
    pub(super) field: Field<'a>,
    pub(super) entries: &'a Map<String, Value>,
}

impl<'a> Record<'a> {
    pub(super) fn get<'b>(&'b self, key: &'b str) -> Field<'b> {
        Field {
            path: self.field.path.at(key),
            value: self.entries.get(key),
        }
    }

    /// Returns the first `limit` keys; more keys than that are a problem.
    pub(super) fn keys(&self, problems: &mut Problems, limit: usize) -> Take<Keys<'a>> {
        if self.entries.len() > limit
            && let Some(value) = self.field.value
        {
            problems.expected(&self.field.path, value, format!("at most {limit} entries"));
        }
        self.entries.keys().take(limit)
    }

    /// Reads the parts of services that both forms share; the caller adds their compose fields.
    pub(super) fn service(
        &self,
        problems: &mut Problems,
        name: Option<ServiceName>,
        id: Option<u64>,
        image_id: &str,
    ) -> Option<TargetService> {
        let image_id = self.get(image_id).number(problems);
        let image = self.get("image").image(problems);
        let environment = self.get("environment").environment(problems);
        let labels = self.get("labels").labels(problems);
        let running = self.get("running").flag(problems, true);
        Some(TargetService {
            name: name?,
            id: ServiceId(id?),
            image_id: ImageId(image_id?),
            image: image?,
            running,
            environment,
            labels,
            contract: self.entries.get("contract").cloned(),
            composition: Map::new(),
        })
    }
}

impl<'a> Field<'a> {
    /// Returns the result of `read` on the value; a missing value and a failed `read` are problems.
    fn read<T>(
        self,
        problems: &mut Problems,
        expected: &str,
        read: impl FnOnce(&'a Value) -> Option<T>,
    ) -> Option<T> {
        let Some(value) = self.value else {
            problems.missing(&self.path, expected);
            return None;
        };
        let result = read(value);
        if result.is_none() {
            problems.expected(&self.path, value, expected);
        }
        result
    }

    pub(super) fn record(self, problems: &mut Problems) -> Option<Record<'a>> {
        let entries = self.read(problems, "a map", Value::as_object)?;
        Some(Record {
            field: self,
            entries,
        })
    }

    /// Reads a record as [`Self::record`] does; a missing one is empty.
    pub(super) fn optional_record(self, problems: &mut Problems) -> Option<Record<'a>> {
        self.value?;
        self.record(problems)
    }

    /// Reads an integer of at least 0, as a number or in digits.
    pub(super) fn number(self, problems: &mut Problems) -> Option<u64> {
        const EXPECTED: &str = "an integer of at least 0, as a number or a string of digits";
        // 2^53 - 1: the largest number that every reader of our JSON answers reads exactly.
        const LARGEST: u64 = 9_007_199_254_740_991;
        self.read(problems, EXPECTED, |value| {
            let number = match value {
                // `as_f64` for numbers that are whole but written `1.0` or `1e3`.
                Value::Number(number) => number.as_u64().or_else(|| {
                    let float = number.as_f64()?;
                    let is_whole = float.fract() == 0.0 && (0.0..=LARGEST as f64).contains(&float);
                    is_whole.then_some(float as u64)
                }),
                Value::String(text) if text.bytes().all(|b| b.is_ascii_digit()) => {
                    text.parse().ok()
                }
                _ => None,
            };
            number.filter(|number| *number <= LARGEST)
        })
    }

    /// Reads a text of at most 255 characters on one line.
    pub(super) fn short_text(self, problems: &mut Problems) -> Option<String> {
        const EXPECTED: &str = "a string of at most 255 characters on one line";
        self.read(problems, EXPECTED, |value| {
            let text = value.as_str()?;
            let is_short = text.chars().count() <= MAX_NAME && !text.contains(['\n', '\r', '\0']);
            is_short.then(|| text.to_owned())
        })
    }

    /// Reads a text that parses as `T`, described by `expected`.
    pub(super) fn parsed<T: FromStr>(self, problems: &mut Problems, expected: &str) -> Option<T> {
        self.read(problems, expected, |value| value.as_str()?.parse().ok())
    }

    /// Returns the key at the end of the path, as `T`: it must be a name.
    pub(super) fn name<T: FromStr>(self, problems: &mut Problems) -> Option<T> {
        let key = self.path.key();
        let name = key.parse().ok();
        if name.is_none() {
            problems.expected(&self.path, &Value::from(key), NAME);
        }
        name
    }

    fn image(self, problems: &mut Problems) -> Option<ImageRef> {
        const EXPECTED: &str = "an image reference of at most 255 characters without white space";
        self.read(problems, EXPECTED, |value| {
            ImageRef::normalized(value.as_str()?).ok()
        })
    }

    /// Reads a boolean, or a text or number that stands for one; `default` if it is left out.
    pub(super) fn flag(self, problems: &mut Problems, default: bool) -> bool {
        match self.value {
            None | Some(Value::Null) => default,
            Some(value @ (Value::Bool(_) | Value::String(_) | Value::Number(_))) => truthy(value),
            Some(other) => {
                problems.expected(&self.path, other, "a boolean");
                default
            }
        }
    }

    /// Reads the variables of a service.
    fn environment(self, problems: &mut Problems) -> BTreeMap<String, String> {
        self.texts(problems, |key| {
            (!is_variable_name(key)).then_some("a variable name (`[A-Za-z_][A-Za-z0-9_]*`)")
        })
    }

    /// Reads the labels of a service.
    fn labels(self, problems: &mut Problems) -> BTreeMap<String, String> {
        self.texts(problems, |key| {
            (!is_label_name(key))
                .then_some("a label name (printable ASCII without spaces, quotes and backticks)")
        })
    }

    /// Reads the device's configuration, without prefixes and without keys that have no meaning
    /// here.
    pub(super) fn config(
        self,
        problems: &mut Problems,
        prefixes: &[String],
    ) -> BTreeMap<String, String> {
        let all = self.texts(problems, |key| {
            let valid = key.len() <= MAX_NAME
                && key.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
                && key
                    .chars()
                    .all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | ':'));
            (!valid).then_some("a configuration key (`[A-Za-z_][A-Za-z0-9_:]*`, at most 255)")
        });
        config_variables::retain_known(all, prefixes)
    }

    /// Reads definitions of volumes or networks by name.
    pub(super) fn definitions(
        self,
        problems: &mut Problems,
    ) -> BTreeMap<String, Map<String, Value>> {
        let mut definitions = BTreeMap::new();
        let Some(record) = self.optional_record(problems) else {
            return definitions;
        };
        for name in record.keys(problems, MAX_PER_RELEASE) {
            let definition = record.get(name);
            if !is_name(name) {
                problems.expected(&definition.path, &Value::from(name.as_str()), NAME);
            }
            if let Some(definition) = definition.record(problems) {
                definitions.insert(name.clone(), definition.entries.clone());
            }
        }
        definitions
    }

    /// Reads a map of strings whose keys `refuses` accepts.
    fn texts(
        self,
        problems: &mut Problems,
        refuses: fn(&str) -> Option<&'static str>,
    ) -> BTreeMap<String, String> {
        let mut texts = BTreeMap::new();
        let Some(record) = self.record(problems) else {
            return texts;
        };
        for key in record.keys(problems, MAX_ENTRIES) {
            let field = record.get(key);
            if let Some(expected) = refuses(key) {
                problems.expected(&field.path, &Value::from(key.as_str()), expected);
            }
            // No engine accepts a NUL character: it ends a string in the underlying calls.
            let text = field.read(problems, "a string without NUL characters", |value| {
                value.as_str().filter(|text| !text.contains('\0'))
            });
            if let Some(text) = text {
                texts.insert(key.clone(), text.to_owned());
            }
        }
        texts
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
