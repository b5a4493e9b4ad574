//! Numbers as clients of this API have always been allowed to write them (docs/spec/device.md#http-lenient). For
//! flags see [`model::truthy`].

use serde_json::Value;

/// A whole number in digits, with a minus sign or with `.0` behind it; `None` for all else.
pub(crate) fn integer(text: &str) -> Option<i64> {
    let whole = match text.split_once('.') {
        Some((whole, zeros)) if !zeros.is_empty() && zeros.bytes().all(|b| b == b'0') => whole,
        Some(_) => return None,
        None => text,
    };
    let digits = whole.strip_prefix('-').unwrap_or(whole);
    if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    whole.parse().ok()
}

/// A field of a body as a whole number: a number, or a string as [`integer`] reads it.
pub(crate) fn integer_field(value: &Value) -> Option<i64> {
    match value {
        Value::String(text) => integer(text),
        // `5.0` is 5.
        Value::Number(number) => integer(&number.to_string()),
        _ => None,
    }
}

/// A field of a body as a string; some words count as none.
pub(crate) fn string_field(value: &Value) -> Option<&str> {
    let text = value.as_str()?;
    (!matches!(text, "" | "null" | "undefined")).then_some(text)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn integers_are_digits_with_a_sign_and_zeros_behind_the_point() {
        for (given, read) in [
            ("5", Some(5)),
            ("5.0", Some(5)),
            ("5.000", Some(5)),
            ("-3", Some(-3)),
            ("0", Some(0)),
            ("5a", None),
            ("0x5", None),
            ("1.5", None),
            ("5.", None),
            (".0", None),
            ("-", None),
            ("+5", None),
            (" 5", None),
            ("", None),
            ("99999999999999999999", None),
        ] {
            assert_eq!(integer(given), read, "{given:?}");
        }
    }

    #[test]
    fn fields_of_bodies_are_numbers_or_their_digits() {
        for (given, read) in [
            (json!(5), Some(5)),
            (json!("5"), Some(5)),
            (json!(5.0), Some(5)),
            (json!(-3), Some(-3)),
            (json!(1.5), None),
            (json!(1e30), None),
            (json!(true), None),
            (json!(null), None),
            (json!([5]), None),
            (json!(""), None),
        ] {
            assert_eq!(integer_field(&given), read, "{given}");
        }
        for (given, read) in [
            (json!("web"), Some("web")),
            (json!(""), None),
            (json!("null"), None),
            (json!("undefined"), None),
            (json!(5), None),
        ] {
            assert_eq!(string_field(&given), read, "{given}");
        }
    }
}
