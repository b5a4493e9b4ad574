//! Lenient reading of the fields of a body, as in the device API's v1 and v2: a value that does not fit counts as
//! absent, or as false, and is never an error by itself (docs/spec/device.md#http-lenient). The device's API and
//! the SDK use this.
//!
//! ```
//! use serde::Deserialize;
//!
//! #[derive(Deserialize, Default)]
//! #[serde(default, rename_all = "camelCase")]
//! struct ServiceAction {
//!     #[serde(deserialize_with = "lenient::string")]
//!     service_name: Option<String>,
//!     #[serde(deserialize_with = "lenient::int")]
//!     image_id: Option<i64>,
//!     #[serde(deserialize_with = "lenient::truthy")]
//!     force: bool,
//! }
//! ```

#![warn(missing_docs)]

use std::fmt;

use serde::de::{Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

/// The largest whole number that every JSON client can hold exactly.
const LARGEST_EXACT: f64 = 9_007_199_254_740_992.0;

/// Reads a whole number (`checkInt`): a number without a fraction, or text such as `5`, `-3` or `5.0`.
///
/// # Errors
/// Only those of the format itself.
pub fn int<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<i64>, D::Error> {
    Ok(match PlainValue::read(deserializer)? {
        PlainValue::Int(number) => Some(number),
        PlainValue::Float(number) if number.fract() == 0.0 && number.abs() <= LARGEST_EXACT =>
        {
            #[expect(clippy::cast_possible_truncation, reason = "whole, and in range")]
            Some(number as i64)
        }
        PlainValue::Text(text) => parse_int(&text),
        _ => None,
    })
}

/// Reads a number as [`int`] does; only numbers above zero count.
///
/// # Errors
/// Only those of the format itself.
pub fn positive_int<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<i64>, D::Error> {
    Ok(int(deserializer)?.filter(|number| *number > 0))
}

/// Returns whether the value is `1`, `"1"`, `true`, `"true"` or `"on"` (`checkTruthy`), text in any case.
///
/// # Errors
/// Only those of the format itself.
pub fn truthy<'de, D: Deserializer<'de>>(deserializer: D) -> Result<bool, D::Error> {
    Ok(match PlainValue::read(deserializer)? {
        PlainValue::Bool(value) => value,
        PlainValue::Int(number) => number == 1,
        #[expect(
            clippy::float_cmp,
            reason = "`1.0` in JSON is the number 1 to its clients"
        )]
        PlainValue::Float(number) => number == 1.0,
        PlainValue::Text(text) => truthy_text(&text),
        PlainValue::Other => false,
    })
}

/// Reads text (`checkString`); `""`, `"null"` and `"undefined"` count as absent.
///
/// # Errors
/// Only those of the format itself.
pub fn string<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    Ok(match PlainValue::read(deserializer)? {
        PlainValue::Text(text) if !["", "null", "undefined"].contains(&text.as_str()) => Some(text),
        _ => None,
    })
}

/// Returns whether a text means true, by the rules of [`truthy`].
#[must_use]
pub fn truthy_text(text: &str) -> bool {
    ["1", "true", "on"]
        .iter()
        .any(|yes| text.eq_ignore_ascii_case(yes))
}

/// Reads a whole number in digits, optionally with a minus sign before or `.0` after them; `None` for anything
/// else.
#[must_use]
pub fn parse_int(text: &str) -> Option<i64> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
    let digits = whole.strip_prefix('-').unwrap_or(whole);
    let all_digits = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    let no_fraction = !fraction.is_empty() && fraction.bytes().all(|byte| byte == b'0');
    (all_digits && no_fraction).then(|| whole.parse().ok())?
}

/// Any value; only the plain ones matter here.
enum PlainValue {
    Bool(bool),
    Int(i64),
    Float(f64),
    Text(String),
    Other,
}

impl PlainValue {
    fn read<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(PlainVisitor)
    }
}

struct PlainVisitor;

impl<'de> Visitor<'de> for PlainVisitor {
    type Value = PlainValue;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any value")
    }

    fn visit_bool<E>(self, value: bool) -> Result<PlainValue, E> {
        Ok(PlainValue::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<PlainValue, E> {
        Ok(PlainValue::Int(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<PlainValue, E> {
        Ok(i64::try_from(value).map_or(PlainValue::Other, PlainValue::Int))
    }

    fn visit_f64<E>(self, value: f64) -> Result<PlainValue, E> {
        Ok(PlainValue::Float(value))
    }

    fn visit_str<E>(self, value: &str) -> Result<PlainValue, E> {
        Ok(PlainValue::Text(value.to_owned()))
    }

    fn visit_string<E>(self, value: String) -> Result<PlainValue, E> {
        Ok(PlainValue::Text(value))
    }

    fn visit_unit<E>(self) -> Result<PlainValue, E> {
        Ok(PlainValue::Other)
    }

    fn visit_none<E>(self) -> Result<PlainValue, E> {
        Ok(PlainValue::Other)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<PlainValue, D::Error> {
        PlainValue::read(deserializer)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<PlainValue, A::Error> {
        while items.next_element::<IgnoredAny>()?.is_some() {}
        Ok(PlainValue::Other)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<PlainValue, A::Error> {
        while fields.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(PlainValue::Other)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn whole_numbers_are_read_from_numbers_and_text() {
        let accepted = [
            (json!(5), 5),
            (json!("5"), 5),
            (json!("5.0"), 5),
            (json!("5.000"), 5),
            (json!(-3), -3),
            (json!("-3"), -3),
            (json!(5.0), 5),
            (json!("0"), 0),
        ];
        for (value, number) in accepted {
            assert_eq!(int(value.clone()).unwrap(), Some(number), "{value}");
        }
        let refused = [
            json!("5a"),
            json!("0x5"),
            json!("1.5"),
            json!("1."),
            json!("+5"),
            json!(" 5"),
            json!("-"),
            json!(1.5),
            json!(1e300),
            json!(true),
            json!(""),
            json!([5]),
            json!({"a": [1, {"b": 2}]}),
            json!("99999999999999999999"),
            json!(u64::MAX),
            Value::Null,
        ];
        for value in refused {
            assert_eq!(int(value.clone()).unwrap(), None, "{value}");
        }
    }

    #[test]
    fn only_numbers_above_zero_are_positive() {
        for (value, expected) in [(json!(1), Some(1)), (json!(0), None), (json!("-1"), None)] {
            assert_eq!(positive_int(value).unwrap(), expected);
        }
    }

    #[test]
    fn truth_is_one_true_and_on() {
        for value in [
            json!(1),
            json!("1"),
            json!(true),
            json!("True"),
            json!("ON"),
            json!(1.0),
        ] {
            assert!(truthy(value.clone()).unwrap(), "{value}");
        }
        for value in [
            json!("yes"),
            json!(2),
            json!({}),
            json!([1]),
            Value::Null,
            json!(0),
            json!(""),
        ] {
            assert!(!truthy(value.clone()).unwrap(), "{value}");
        }
    }

    #[test]
    fn words_for_nothing_are_no_text() {
        assert_eq!(string(json!("web")).unwrap(), Some("web".to_owned()));
        for value in [
            json!(""),
            json!("null"),
            json!("undefined"),
            json!(5),
            json!(["web"]),
        ] {
            assert_eq!(string(value.clone()).unwrap(), None, "{value}");
        }
    }
}
