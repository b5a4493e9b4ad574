//! Unlikely JSON: values with a few changes after which they are still JSON.

use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Map, Value, json};

/// One change of a value.
#[derive(Debug, Clone)]
enum ValueChange {
    /// Replaces a value with another one.
    Replace(usize, Value),
    /// Removes a value from its array or object.
    Remove(usize),
    /// Adds a value to an object under this name, or to an array.
    Add(usize, String, Value),
    /// Renames a value of an object.
    Rename(usize, String),
    /// Puts this many arrays or objects around a value.
    Wrap(usize, usize, bool),
    /// Copies a value to another place.
    Copy(usize, usize),
}

/// Values of a corpus with a few changes. `names` are names of fields, some of which the reader knows; `texts` are
/// texts that have a meaning to it.
///
/// # Panics
/// If the corpus is empty.
pub fn changed(
    corpus: Vec<Value>,
    names: &'static [&'static str],
    texts: &'static [&'static str],
) -> BoxedStrategy<Value> {
    let name = prop_oneof![
        6 => select(names).prop_map(str::to_owned),
        1 => "\\PC{0,12}",
        1 => select(&["", "__proto__", "a.b", "a/b", "../..", "\0", "-x", "A B", "é\u{202e}"][..])
            .prop_map(str::to_owned),
    ];
    let value = prop_oneof![
        4 => select(texts).prop_map(Value::from),
        2 => scalar(),
        1 => any::<String>().prop_map(Value::from),
        1 => (1_usize..20_000).prop_map(|length| Value::from("x".repeat(length))),
        1 => Just(json!({})),
        1 => Just(json!([])),
        1 => select(texts).prop_map(|text| json!([text])),
        1 => (select(names), select(texts)).prop_map(|(name, text)| json!({ name: text })),
    ];
    let at = any::<usize>;
    let change = prop_oneof![
        6 => (at(), value.clone()).prop_map(|(at, value)| ValueChange::Replace(at, value)),
        2 => at().prop_map(ValueChange::Remove),
        4 => (at(), name.clone(), value).prop_map(|(at, name, value)| ValueChange::Add(at, name, value)),
        2 => (at(), name).prop_map(|(at, name)| ValueChange::Rename(at, name)),
        1 => (at(), 1_usize..100, any::<bool>())
            .prop_map(|(at, times, object)| ValueChange::Wrap(at, times, object)),
        2 => (at(), at()).prop_map(|(at, from)| ValueChange::Copy(at, from)),
    ];
    (select(corpus), prop::collection::vec(change, 0..6))
        .prop_map(|(mut value, changes)| {
            for change in changes {
                apply(&mut value, change);
            }
            value
        })
        .boxed()
}

fn scalar() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (0_u64..4).prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        Just(json!(-0.0)),
        Just(json!(1e300)),
    ]
}

fn apply(root: &mut Value, change: ValueChange) {
    let end = count(root);
    match change {
        ValueChange::Replace(at, value) => *node(root, at % end) = value,
        ValueChange::Copy(at, from) => {
            let value = node(root, from % end).clone();
            // Copies of copies would grow without limit.
            if end + count(&value) < 2_000 {
                *node(root, at % end) = value;
            }
        }
        ValueChange::Wrap(at, times, object) => {
            let place = node(root, at % end);
            for _ in 0..times {
                let value = place.take();
                *place = if object {
                    json!({ "a": value })
                } else {
                    json!([value])
                };
            }
        }
        ValueChange::Remove(at) => match node(root, at % end) {
            Value::Object(fields) if !fields.is_empty() => {
                if let Some(name) = fields.keys().nth(at % fields.len()).cloned() {
                    fields.remove(&name);
                }
            }
            Value::Array(items) if !items.is_empty() => {
                items.remove(at % items.len());
            }
            other => *other = Value::Null,
        },
        ValueChange::Add(at, name, value) => match node(root, at % end) {
            Value::Object(fields) => {
                fields.insert(name, value);
            }
            Value::Array(items) => items.push(value),
            other => *other = Value::Object(Map::from_iter([(name, value)])),
        },
        ValueChange::Rename(at, name) => {
            if let Value::Object(fields) = node(root, at % end)
                && !fields.is_empty()
                && let Some(old) = fields.keys().nth(at % fields.len()).cloned()
                && let Some(value) = fields.remove(&old)
            {
                fields.insert(name, value);
            }
        }
    }
}

/// Returns the number of values in it, including itself.
fn count(value: &Value) -> usize {
    1 + match value {
        Value::Array(items) => items.iter().map(count).sum(),
        Value::Object(fields) => fields.values().map(count).sum(),
        _ => 0,
    }
}

/// Returns the value at position `at`, counted from the root, with each value before its children.
fn node(value: &mut Value, at: usize) -> &mut Value {
    if at == 0 {
        return value;
    }
    let mut before = 1;
    let place = children(value).into_iter().position(|size| {
        before += size;
        at < before
    });
    let Some(place) = place else { return value };
    let below = at - (before - children(value)[place]);
    match value {
        Value::Array(items) => node(&mut items[place], below),
        Value::Object(fields) => match fields.values_mut().nth(place) {
            Some(child) => node(child, below),
            None => panic!("the object has {place} values"),
        },
        scalar => scalar,
    }
}

fn children(value: &Value) -> Vec<usize> {
    match value {
        Value::Array(items) => items.iter().map(count).collect(),
        Value::Object(fields) => fields.values().map(count).collect(),
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_place_is_found_once() {
        let mut value = json!({ "a": [1, { "b": 2 }], "c": {}, "d": 3 });
        assert_eq!(count(&value), 7);
        for at in 0..7 {
            *node(&mut value.clone(), at) = json!("here");
        }
        *node(&mut value, 4) = json!("here");
        assert_eq!(value, json!({ "a": [1, { "b": "here" }], "c": {}, "d": 3 }));
        *node(&mut value, 6) = json!("there");
        assert_eq!(value["d"], "there");
    }

    #[test]
    fn values_change_and_stay_values() {
        let inputs = changed(vec![json!({ "a": [1, 2] })], &["a", "b"], &["x"]);
        crate::run("values", 500, &inputs, |value| {
            let text = value.to_string();
            prop_assert!(serde_json::from_str::<Value>(&text).is_ok() || text.len() > 100);
            Ok(())
        });
    }
}
