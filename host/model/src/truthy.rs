//! Values that count as true although clients can express them in several ways.

pub use lenient::truthy_text;
use serde_json::Value;

/// Returns whether a value stands for true: `true`, 1, `"1"`, `"true"`, `"on"`, in any case
/// (docs/spec/device.md#http-lenient). Everything else is false, never an error: `force` in a request body, feature
/// labels and boolean configuration variables are all read in this way.
#[must_use]
pub fn truthy(value: &Value) -> bool {
    lenient::truthy(value).unwrap_or(false)
}

/// Reads a flag and recognizes invalid texts: `None` for a text that is neither a form of true nor
/// one of false, which are `"0"`, `"false"`, `"off"` and the empty text.
#[must_use]
pub fn read_flag(text: &str) -> Option<bool> {
    let is_false = ["0", "false", "off", ""]
        .iter()
        .any(|no| text.eq_ignore_ascii_case(no));
    if truthy_text(text) {
        Some(true)
    } else {
        is_false.then_some(false)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_the_listed_forms_are_true() {
        for yes in [
            json!(true),
            json!(1),
            json!("1"),
            json!("TRUE"),
            json!("on"),
        ] {
            assert!(truthy(&yes), "{yes}");
        }
        for no in [
            json!(false),
            json!(null),
            json!(0),
            json!(2),
            json!("yes"),
            json!(""),
            json!(" true"),
            json!([true]),
            json!({}),
        ] {
            assert!(!truthy(&no), "{no}");
        }
    }
}
