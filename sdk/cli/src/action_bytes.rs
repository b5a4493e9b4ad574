//! The input or the output of another plugin's action, as files of TOML contain it.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use crate::json_text::JsonText;

/// Bytes that are written as `text`, as `json` or `json_text`, or as `base64`.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum ActionBytes {
    Json(Value),
    Bytes(Vec<u8>),
}

impl ActionBytes {
    /// Returns the bytes that a table contains under one of these keys; `None` if it has none of them.
    ///
    /// # Errors
    /// It has more than one, or the base64 is invalid.
    pub(crate) fn from_keys(
        text: Option<String>,
        json: Option<Value>,
        json_text: Option<JsonText>,
        base64: Option<String>,
    ) -> Result<Option<ActionBytes>, String> {
        let base64 = base64.map(|base64| STANDARD.decode(base64)).transpose();
        let base64 = base64.map_err(|error| format!("`base64` is invalid: {error}"))?;
        let values = [
            text.map(|text| ActionBytes::Bytes(text.into_bytes())),
            json.map(ActionBytes::Json),
            json_text.map(|JsonText(json)| ActionBytes::Json(json)),
            base64.map(ActionBytes::Bytes),
        ];
        let mut values = values.into_iter().flatten();
        let value = values.next();
        if values.next().is_some() {
            return Err(
                "it can have only one of `text`, `json`, `json_text` and `base64`".to_owned(),
            );
        }
        Ok(value)
    }

    /// Returns the bytes that an action receives or answers.
    pub(crate) fn into_bytes(self) -> Vec<u8> {
        match self {
            ActionBytes::Json(json) => json.to_string().into_bytes(),
            ActionBytes::Bytes(bytes) => bytes,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn bytes_are_text_json_or_base64_and_one_of_them() {
        let text = |text: &str| Some(text.to_owned());
        let from = ActionBytes::from_keys;
        assert_eq!(from(None, None, None, None), Ok(None));
        let bytes = from(None, None, None, text("/wD+")).unwrap().unwrap();
        assert_eq!(bytes.into_bytes(), [0xff, 0, 0xfe]);
        let json = from(None, Some(json!({ "on": true })), None, None);
        assert_eq!(json.unwrap().unwrap().into_bytes(), b"{\"on\":true}");
        let null = from(None, None, Some(JsonText(Value::Null)), None);
        assert_eq!(null.unwrap().unwrap().into_bytes(), b"null");
        let error = from(text("a"), Some(json!(1)), None, None).unwrap_err();
        assert!(error.contains("only one of `text`"), "{error}");
        let error = from(None, None, None, text("a b")).unwrap_err();
        assert!(error.contains("`base64` is invalid"), "{error}");
    }
}
