//! SHA-256 of a JSON value, independent of the order of its keys and of white space.

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;
use sha2::{Digest as _, Sha256};

/// 64 lower-case hexadecimal digits.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(transparent)]
pub struct Digest(String);

impl Digest {
    /// Returns the digest of a JSON value in its canonical form: keys in the order of their bytes,
    /// no white space.
    #[must_use]
    pub fn hash_json(value: &Value) -> Digest {
        let mut hasher = Sha256::new();
        feed(&mut hasher, value);
        Digest(hex::encode(hasher.finalize()))
    }

    /// Returns the digest of an unchanged text.
    #[must_use]
    pub fn hash_text(text: &str) -> Digest {
        Digest(hex::encode(Sha256::digest(text.as_bytes())))
    }
}

// The JSON parser refuses values that are nested too deeply, so they do not get here.
fn feed(hasher: &mut Sha256, value: &Value) {
    match value {
        Value::Object(fields) => {
            let mut names: Vec<&String> = fields.keys().collect();
            names.sort_unstable();
            hasher.update(b"{");
            for (at, name) in names.into_iter().enumerate() {
                if at > 0 {
                    hasher.update(b",");
                }
                hasher.update(Value::from(name.as_str()).to_string());
                hasher.update(b":");
                feed(hasher, fields.get(name).unwrap_or(&Value::Null));
            }
            hasher.update(b"}");
        }
        Value::Array(items) => {
            hasher.update(b"[");
            for (at, item) in items.iter().enumerate() {
                if at > 0 {
                    hasher.update(b",");
                }
                feed(hasher, item);
            }
            hasher.update(b"]");
        }
        plain => hasher.update(plain.to_string()),
    }
}

impl<'de> Deserialize<'de> for Digest {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let is_digit = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        if text.len() == 64 && text.bytes().all(is_digit) {
            return Ok(Digest(text));
        }
        Err(serde::de::Error::custom(
            "a digest has 64 lower-case hexadecimal digits",
        ))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_order_of_keys_is_no_difference_and_any_other_change_is() {
        let value = json!({ "b": [1, { "y": null, "x": "a\"b" }], "a": true });
        let same = json!({ "a": true, "b": [1, { "x": "a\"b", "y": null }] });
        assert_eq!(Digest::hash_json(&value), Digest::hash_json(&same));
        // As any other program computes it.
        let canonical = r#"{"a":true,"b":[1,{"x":"a\"b","y":null}]}"#;
        assert_eq!(Digest::hash_json(&value), Digest::hash_text(canonical));
        for other in [
            json!({ "a": true, "b": [{ "x": "a\"b", "y": null }, 1] }),
            json!({ "a": true, "b": [1, { "x": "a\"b" }] }),
            json!({ "a": "true", "b": [1, { "x": "a\"b", "y": null }] }),
            json!({ "a": true, "b": [1, [{ "x": "a\"b", "y": null }]] }),
        ] {
            assert_ne!(
                Digest::hash_json(&value),
                Digest::hash_json(&other),
                "{other}"
            );
        }
    }
}
