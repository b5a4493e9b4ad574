//! JSON that a TOML file contains as text: TOML has no null.

use serde::Deserialize;
use serde_json::Value;

/// The value of a key `json_text`.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(try_from = "String")]
pub(crate) struct JsonText(pub(crate) Value);

impl TryFrom<String> for JsonText {
    type Error = String;

    fn try_from(text: String) -> Result<JsonText, String> {
        serde_json::from_str(&text)
            .map(JsonText)
            .map_err(|error| format!("`json_text` is not JSON: {error}"))
    }
}

impl JsonText {
    /// Returns the JSON that a table contains as `json` or as `json_text`.
    ///
    /// # Errors
    /// It contains both.
    pub(crate) fn either(
        json: Option<Value>,
        text: Option<JsonText>,
    ) -> Result<Option<Value>, String> {
        match (json, text) {
            (Some(_), Some(_)) => {
                Err("it has `json` and `json_text`, and can have one of them".to_owned())
            }
            (json, text) => Ok(json.or(text.map(|text| text.0))),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[derive(Debug, Deserialize)]
    struct Table {
        json: Option<Value>,
        json_text: Option<JsonText>,
    }

    fn either(text: &str) -> Result<Option<Value>, String> {
        let table: Table = toml::from_str(text).map_err(|error| error.to_string())?;
        JsonText::either(table.json, table.json_text)
    }

    #[test]
    fn json_is_written_as_toml_or_as_text_which_may_contain_null() {
        assert_eq!(either(""), Ok(None));
        let expected = json!({ "a": [1, true] });
        assert_eq!(either("json = { a = [1, true] }"), Ok(Some(expected)));
        let expected = json!({ "a": null });
        assert_eq!(either("json_text = '{\"a\":null}'"), Ok(Some(expected)));
        assert_eq!(either("json_text = 'null'"), Ok(Some(Value::Null)));
    }

    #[test]
    fn text_that_is_not_json_and_json_twice_are_refused() {
        let deep = format!("json_text = '{}'", "[".repeat(100_000));
        for (text, expected) in [
            ("json_text = '{a}'", "`json_text` is not JSON: key must be"),
            ("json_text = ''", "`json_text` is not JSON: EOF"),
            (
                deep.as_str(),
                "`json_text` is not JSON: recursion limit exceeded",
            ),
            ("json = 1\njson_text = '1'", "it has `json` and `json_text`"),
        ] {
            let error = either(text).unwrap_err();
            assert!(error.contains(expected), "{expected}: {error}");
        }
    }
}
