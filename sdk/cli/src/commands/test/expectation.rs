//! Expectations about an answer.

use std::collections::BTreeMap;

use plugin_test_host::Answer;
use serde::Deserialize;
use serde_json::Value;

/// The maximum number of characters of a body that a message shows.
const SHOWN: usize = 500;

/// The parts that are compared; parts that are not given may have any value.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Expectation {
    status: Option<u16>,
    #[serde(default)]
    headers: BTreeMap<String, String>,
    /// The complete body.
    body: Option<String>,
    /// Texts that the body must contain.
    #[serde(default)]
    contains: Vec<String>,
    /// The complete body, as JSON.
    json: Option<Value>,
}

impl Expectation {
    /// Describes in sentences how the answer differs.
    pub(crate) fn differences(&self, answer: &Answer) -> Vec<String> {
        let mut differences = Vec::new();
        let body = String::from_utf8_lossy(&answer.body);
        let status = answer.status.as_u16();
        if let Some(expected) = self.status
            && expected != status
        {
            differences.push(format!(
                "expected the status {expected}, got {status} with the body {}",
                shown(&body)
            ));
        }
        for (name, expected) in &self.headers {
            let value = answer.headers.get(name);
            let value = value.map(|value| String::from_utf8_lossy(value.as_bytes()));
            if value.as_deref() != Some(expected) {
                let value = value.map_or("none".to_owned(), |value| format!("`{value}`"));
                differences.push(format!(
                    "expected the header `{name}: {expected}`, got {value}"
                ));
            }
        }
        if let Some(expected) = &self.body
            && *expected != body
        {
            differences.push(format!(
                "expected the body {}, got {}",
                shown(expected),
                shown(&body)
            ));
        }
        for text in &self.contains {
            if !body.contains(text.as_str()) {
                differences.push(format!(
                    "expected a body that contains {}, got {}",
                    shown(text),
                    shown(&body)
                ));
            }
        }
        if let Some(expected) = &self.json {
            match serde_json::from_slice::<Value>(&answer.body) {
                Ok(json) if json == *expected => {}
                Ok(json) => differences.push(format!("expected {expected}, got {json}")),
                Err(error) => differences.push(format!(
                    "expected {expected}, got {}, which is not JSON: {error}",
                    shown(&body)
                )),
            }
        }
        differences
    }
}

/// Returns a body in quotes, shortened if it is long.
fn shown(body: &str) -> String {
    let cut: String = body.chars().take(SHOWN).collect();
    if cut.len() < body.len() {
        format!("{cut:?}… ({} bytes)", body.len())
    } else {
        format!("{cut:?}")
    }
}

#[cfg(test)]
mod tests {
    use http::{HeaderMap, StatusCode};

    use super::*;

    #[test]
    fn only_what_is_expected_is_compared() {
        let mut headers = HeaderMap::new();
        headers.insert("x-rail", "5v".parse().unwrap());
        let answer = Answer {
            status: StatusCode::OK,
            headers,
            body: "{\"on\":true}".into(),
        };
        for (text, expected) in [
            ("", None),
            ("status = 200\nheaders = { X-Rail = \"5v\" }", None),
            ("json = { on = true }\ncontains = [\"on\"]", None),
            (
                "status = 404",
                Some("expected the status 404, got 200 with the body"),
            ),
            (
                "headers = { x-rail = \"3v\" }",
                Some("expected the header `x-rail: 3v`, got `5v`"),
            ),
            ("headers = { x-other = \"\" }", Some("got none")),
            (
                "body = \"on\"",
                Some("expected the body \"on\", got \"{\\\"on\\\":true}\""),
            ),
            (
                "contains = [\"off\"]",
                Some("expected a body that contains \"off\""),
            ),
            (
                "json = { on = false }",
                Some("expected {\"on\":false}, got {\"on\":true}"),
            ),
        ] {
            let expectation: Expectation = toml::from_str(text).unwrap();
            let differences = expectation.differences(&answer).join("\n");
            match expected {
                None => assert_eq!(differences, "", "{text}"),
                Some(expected) => assert!(differences.contains(expected), "{text}: {differences}"),
            }
        }
    }
}
