//! Values of requests as clients of this API have always been allowed to write them (device behaviour
//! 1.0): numbers as strings, flags in many forms. A value that is none of these counts as absent.

use serde_json::Value;

/// `true` for `1`, `"1"`, `true`, `"true"` and `"on"`, whatever the case; all else is `false`.
pub(crate) fn truthy(value: Option<&Value>) -> bool {
    match value {
        Some(Value::Bool(flag)) => *flag,
        Some(Value::Number(number)) => number.as_f64() == Some(1.0),
        Some(Value::String(text)) => {
            text == "1" || text.eq_ignore_ascii_case("true") || text.eq_ignore_ascii_case("on")
        }
        _ => false,
    }
}

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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn flags_are_true_in_the_forms_that_clients_use_and_false_in_all_others() {
        for yes in [
            json!(1),
            json!("1"),
            json!(true),
            json!("true"),
            json!("TRUE"),
            json!("On"),
        ] {
            assert!(truthy(Some(&yes)), "{yes}");
        }
        for no in [
            json!(0),
            json!(2),
            json!("yes"),
            json!(""),
            json!(null),
            json!({}),
            json!([true]),
        ] {
            assert!(!truthy(Some(&no)), "{no}");
        }
        assert!(!truthy(None));
    }

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
}
