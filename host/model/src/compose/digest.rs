//! Digests of configurations: they identify what a container, volume or network was created from,
//! in 64 characters that it carries as a label.

use std::fmt::Write as _;

use serde::Serialize;
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::{Branding, CONFIG_DIGEST_LABEL, ServiceConfig};

/// Returns the label for the digest.
pub(super) fn label(branding: &Branding) -> String {
    branding.label(CONFIG_DIGEST_LABEL)
}

/// Returns SHA-256, in hexadecimal, of a service's configuration without its digest label. CPUs are not part of the
/// serialized form (docs/spec/device.md#compose-compared). An image that is named by its digest counts as that digest:
/// the same image often has another name in the next release.
pub(super) fn compute_for_service(config: &ServiceConfig, branding: &Branding) -> String {
    let mut value = to_value(config);
    if let Some(labels) = value.get_mut("labels").and_then(Value::as_object_mut) {
        labels.remove(&label(branding));
    }
    if let Some((_, digest)) = config.image.as_str().split_once('@') {
        value["image"] = Value::String(digest.to_owned());
    }
    hashed(&value)
}

/// Returns SHA-256, in hexadecimal, of a value's canonical JSON: keys sorted, no white space.
pub(super) fn compute(value: &impl Serialize) -> String {
    hashed(&to_value(value))
}

#[expect(
    clippy::expect_used,
    reason = "plain structs whose maps have text as keys always have a JSON form"
)]
fn to_value(value: &impl Serialize) -> Value {
    serde_json::to_value(value).expect("a configuration has a JSON form")
}

fn hashed(value: &Value) -> String {
    let mut text = String::new();
    write_canonical(value, &mut text);
    hex::encode(Sha256::digest(text.as_bytes()))
}

fn write_canonical(value: &Value, out: &mut String) {
    match value {
        Value::Object(entries) => {
            let mut keys: Vec<&String> = entries.keys().collect();
            keys.sort_unstable();
            out.push('{');
            for (index, key) in keys.into_iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                // `Display` of a JSON string quotes it. Writing to a `String` does not fail.
                let _ = write!(out, "{}:", Value::String(key.clone()));
                write_canonical(&entries[key], out);
            }
            out.push('}');
        }
        Value::Array(items) => {
            out.push('[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                write_canonical(item, out);
            }
            out.push(']');
        }
        plain => {
            let _ = write!(out, "{plain}");
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_order_of_keys_has_no_meaning() {
        let one = json!({ "b": [1, { "y": null, "x": "é\"" }], "a": true });
        let other = json!({ "a": true, "b": [1, { "x": "é\"", "y": null }] });
        assert_eq!(compute(&one), compute(&other));
        let mut text = String::new();
        write_canonical(&one, &mut text);
        assert_eq!(text, r#"{"a":true,"b":[1,{"x":"é\"","y":null}]}"#);
    }

    #[test]
    fn the_order_of_items_has_a_meaning() {
        assert_ne!(compute(&json!([1, 2])), compute(&json!([2, 1])));
    }
}
