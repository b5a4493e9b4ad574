//! Reads the fields of one compose object by name, and records which values were wrong and which
//! fields were never read.
//!
//! There are three outcomes: a readable value; an unreadable value, which is replaced by its
//! default with a warning; and a problem, because of which the app is refused.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::findings::Findings;
use super::quantities;
use crate::excerpt::cut;
use crate::target::{Path, Problems};
use crate::truthy;

/// The maximum number of items of one list or map.
const MAX_ITEMS: usize = 4096;
/// What happens to an unreadable value.
pub(super) const IGNORED: &str = "it was ignored";
pub(super) const DEFAULT: &str = "the default is used";

/// The fields of one service, network or volume, or of an object within one.
pub(super) struct Reader<'a> {
    /// The owner's name for people: "service `web`".
    owner: &'a str,
    /// The prefix of field names within an object: `healthcheck.`.
    prefix: String,
    path: Path<'a>,
    /// The fields that have not been read yet, in snake case.
    fields: BTreeMap<String, &'a Value>,
    pub(super) findings: &'a mut Findings,
    problems: &'a mut Problems,
}

impl<'a> Reader<'a> {
    pub(super) fn new(
        owner: &'a str,
        path: Path<'a>,
        fields: &'a Map<String, Value>,
        findings: &'a mut Findings,
        problems: &'a mut Problems,
    ) -> Self {
        Reader {
            owner,
            prefix: String::new(),
            path,
            fields: by_snake_case(fields),
            findings,
            problems,
        }
    }

    /// Returns the result of `read` on the object in `field`; fields that it does not read are
    /// unsupported.
    pub(super) fn within<T>(
        &mut self,
        field: &str,
        fields: &Map<String, Value>,
        read: impl FnOnce(&mut Reader<'_>) -> T,
    ) -> T {
        let mut inner = Reader {
            owner: self.owner,
            prefix: format!("{}{}.", self.prefix, cut(field)),
            path: self.path.at(field),
            fields: by_snake_case(fields),
            findings: self.findings,
            problems: self.problems,
        };
        let result = read(&mut inner);
        inner.finish();
        result
    }

    /// Takes a field; `null` counts as absent. A list or map that is unreasonably large is a
    /// problem.
    pub(super) fn take(&mut self, field: &str) -> Option<&'a Value> {
        let value = self.fields.remove(field).filter(|value| !value.is_null())?;
        let items = match value {
            Value::Array(items) => items.len(),
            Value::Object(entries) => entries.len(),
            _ => 0,
        };
        if items > MAX_ITEMS {
            self.problem(field, value, &format!("at most {MAX_ITEMS} items"));
            return None;
        }
        if !self.findings.take_items(items) {
            self.problem(field, value, "fewer items in the whole target");
            return None;
        }
        Some(value)
    }

    /// Warns about all fields that were not taken. Extension fields (`x-…`) are meant to be
    /// ignored.
    pub(super) fn finish(mut self) {
        for field in std::mem::take(&mut self.fields).into_keys() {
            if !field.starts_with("x-") {
                self.unsupported(&field);
            }
        }
    }

    pub(super) fn unsupported(&mut self, field: &str) {
        self.warn(field, "is not supported and was ignored");
    }

    /// Adds a warning about a field: "service `web`: `field` `what`".
    pub(super) fn warn(&mut self, field: &str, what: &str) {
        let Reader { owner, prefix, .. } = self;
        self.findings
            .warn(format!("{owner}: `{prefix}{}` {what}", cut(field)));
    }

    /// Warns about an unreadable value, which is replaced by `used`.
    pub(super) fn unreadable(&mut self, field: &str, value: &Value, used: &str) {
        let excerpt = cut(&value.to_string());
        self.warn(
            field,
            &format!("has the unreadable value `{excerpt}`: {used}"),
        );
    }

    /// Warns about an unreadable value, which is ignored.
    pub(super) fn ignored(&mut self, field: &str, value: &Value) {
        self.unreadable(field, value, IGNORED);
    }

    /// Records a problem, because of which the app is refused.
    pub(super) fn problem(&mut self, field: &str, value: &Value, expected: &str) {
        self.problems
            .expected(&self.path.at(field), value, expected);
    }

    /// Records a problem with a text.
    pub(super) fn problem_text(&mut self, field: &str, text: &str, expected: &str) {
        self.problem(field, &Value::from(text), expected);
    }

    /// Returns the result of `read` on a field; `None` if it is absent, or unreadable and so replaced by `used`.
    pub(super) fn read<T>(
        &mut self,
        field: &str,
        read: impl FnOnce(&'a Value) -> Option<T>,
        used: &str,
    ) -> Option<T> {
        let value = self.take(field)?;
        let result = read(value);
        if result.is_none() {
            self.unreadable(field, value, used);
        }
        result
    }

    /// Returns a text; numbers and booleans are converted.
    pub(super) fn text(&mut self, field: &str) -> Option<String> {
        self.read(field, scalar, IGNORED)
    }

    /// Returns the items of a list; any other value is the only item.
    pub(super) fn items(&mut self, field: &str) -> &'a [Value] {
        match self.take(field) {
            None => &[],
            Some(Value::Array(items)) => items,
            Some(one) => std::slice::from_ref(one),
        }
    }

    /// Returns a map; anything else is ignored.
    pub(super) fn record(&mut self, field: &str) -> Option<&'a Map<String, Value>> {
        match self.take(field)? {
            Value::Object(entries) => Some(entries),
            other => {
                self.ignored(field, other);
                None
            }
        }
    }

    /// Returns a text or a list of texts, in their order.
    pub(super) fn texts(&mut self, field: &str) -> Vec<String> {
        let items = self.items(field);
        self.scalars(field, items)
    }

    fn scalars(&mut self, field: &str, items: &[Value]) -> Vec<String> {
        let mut texts = Vec::new();
        for item in items {
            match scalar(item) {
                Some(text) => texts.push(text),
                None => self.ignored(field, item),
            }
        }
        texts
    }

    /// As [`Reader::texts`], for a field in which order and repetitions have no meaning.
    pub(super) fn set(&mut self, field: &str) -> Vec<String> {
        let mut texts = self.texts(field);
        texts.sort_unstable();
        texts.dedup();
        texts
    }

    /// Reads a map, or a list of `key=value`. A key without a value has the empty one.
    pub(super) fn pairs(&mut self, field: &str) -> BTreeMap<String, String> {
        let mut pairs = BTreeMap::new();
        match self.take(field) {
            None => {}
            Some(Value::Object(entries)) => {
                for (key, value) in entries {
                    let text = match value {
                        Value::Null => Some(String::new()),
                        value => scalar(value),
                    };
                    match text {
                        Some(text) => drop(pairs.insert(key.clone(), text)),
                        None => self.ignored(field, value),
                    }
                }
            }
            Some(Value::Array(items)) => {
                for text in self.scalars(field, items) {
                    let (key, value) = text.split_once('=').unwrap_or((&text, ""));
                    pairs.insert(key.to_owned(), value.to_owned());
                }
            }
            Some(other) => self.ignored(field, other),
        }
        pairs
    }

    /// Returns a whole number of at least `least`; 0 if it is absent or unreadable.
    pub(super) fn integer(&mut self, field: &str, least: i64) -> i64 {
        let read = |value| quantities::integer(value).filter(|number| *number >= least);
        self.read(field, read, DEFAULT).unwrap_or_default()
    }

    /// Returns bytes.
    pub(super) fn size(&mut self, field: &str, default: u64) -> u64 {
        self.read(field, quantities::size, DEFAULT)
            .unwrap_or(default)
    }

    /// Returns nanoseconds.
    pub(super) fn duration(&mut self, field: &str) -> Option<i64> {
        self.read(field, quantities::duration, DEFAULT)
    }

    /// Returns false if it is absent.
    pub(super) fn flag(&mut self, field: &str) -> bool {
        self.take(field).is_some_and(is_true)
    }
}

/// Reads a boolean as in compose files: every word for false is false, and so is an empty text.
pub(super) fn is_true(value: &Value) -> bool {
    match value {
        Value::String(text) => !["", "0", "false", "off", "no"]
            .iter()
            .any(|no| text.eq_ignore_ascii_case(no)),
        Value::Number(number) => number.as_f64() != Some(0.0),
        other => truthy(other),
    }
}

/// Returns a text, or a number or boolean as text.
pub(super) fn scalar(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Bool(yes) => Some(yes.to_string()),
        // `1.0` is the number 1 for every client that writes JSON by JavaScript's rules.
        Value::Number(_) => quantities::integer(value)
            .map(|whole| whole.to_string())
            .or_else(|| Some(value.to_string())),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

/// Returns the fields in snake case. If a field is given in both spellings, the one in snake case
/// takes precedence.
fn by_snake_case(fields: &Map<String, Value>) -> BTreeMap<String, &Value> {
    let mut all = BTreeMap::new();
    for (name, value) in fields {
        let snake = snake_case(name);
        if snake == *name || !all.contains_key(&snake) {
            all.insert(snake, value);
        }
    }
    all
}

fn snake_case(name: &str) -> String {
    let mut snake = String::with_capacity(name.len() + 4);
    for c in name.chars() {
        if c.is_ascii_uppercase() && !snake.is_empty() {
            snake.push('_');
        }
        snake.push(c.to_ascii_lowercase());
    }
    snake
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn camel_case_becomes_snake_case() {
        for (camel, snake) in [
            ("networkMode", "network_mode"),
            ("network_mode", "network_mode"),
            ("ipv4Address", "ipv4_address"),
            ("enableIpv6", "enable_ipv6"),
            ("oomScoreAdj", "oom_score_adj"),
            ("x-note", "x-note"),
            ("", ""),
        ] {
            assert_eq!(snake_case(camel), snake);
        }
    }

    #[test]
    fn snake_case_wins_where_both_spellings_are_given() {
        for text in [
            r#"{"readOnly": false, "read_only": true}"#,
            r#"{"read_only": true, "readOnly": false}"#,
        ] {
            let fields: Map<String, Value> = serde_json::from_str(text).unwrap();
            assert_eq!(by_snake_case(&fields)["read_only"], &json!(true));
        }
    }

    #[test]
    fn words_for_false_are_false() {
        for no in [
            json!("false"),
            json!("NO"),
            json!(0),
            json!(""),
            json!([]),
            json!(false),
        ] {
            assert!(!is_true(&no), "{no}");
        }
        for yes in [json!("true"), json!("yes"), json!(1), json!(2), json!(true)] {
            assert!(is_true(&yes), "{yes}");
        }
    }

    #[test]
    fn whole_numbers_have_no_point() {
        assert_eq!(scalar(&json!(1.0)).as_deref(), Some("1"));
        assert_eq!(scalar(&json!(1.5)).as_deref(), Some("1.5"));
        assert_eq!(scalar(&json!(-3)).as_deref(), Some("-3"));
        assert_eq!(
            scalar(&json!(18_446_744_073_709_551_615_u64)).as_deref(),
            Some("18446744073709551615")
        );
    }
}
