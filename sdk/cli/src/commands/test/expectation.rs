//! Expectations about an answer.

use std::collections::BTreeMap;

use plugin_test_host::Answer;
use serde::Deserialize;
use serde_json::Value;

use super::body_lines::{LineEnds, body_lines, json_lines, plain_lines};
use super::line_difference::{difference, listing};
use crate::json_text::JsonText;

/// The parts that are compared; parts that are not given may have any value.
#[derive(Debug, Default, Deserialize)]
#[serde(try_from = "ExpectationToml")]
pub(crate) struct Expectation {
    status: Option<u16>,
    headers: BTreeMap<String, String>,
    /// The complete body.
    body: Option<String>,
    /// Texts that the body must contain.
    contains: Vec<String>,
    /// The complete body, as JSON.
    json: Option<Value>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ExpectationToml {
    status: Option<u16>,
    #[serde(default)]
    headers: BTreeMap<String, String>,
    body: Option<String>,
    #[serde(default)]
    contains: Vec<String>,
    json: Option<Value>,
    json_text: Option<JsonText>,
}

impl TryFrom<ExpectationToml> for Expectation {
    type Error = String;

    fn try_from(written: ExpectationToml) -> Result<Expectation, String> {
        Ok(Expectation {
            status: written.status,
            headers: written.headers,
            body: written.body,
            contains: written.contains,
            json: JsonText::either(written.json, written.json_text)?,
        })
    }
}

impl Expectation {
    /// Describes in sentences how the answer differs, and shows its body once: beside the expected one, or alone.
    pub(crate) fn differences(&self, answer: &Answer) -> Vec<String> {
        let mut differences = Vec::new();
        let status = answer.status.as_u16();
        if let Some(expected) = self.status
            && expected != status
        {
            differences.push(format!("expected the status {expected}, got {status}"));
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
        for text in &self.contains {
            if !String::from_utf8_lossy(&answer.body).contains(text.as_str()) {
                let lines = listing(&plain_lines(text.as_bytes(), LineEnds::Hidden));
                differences.push(format!(
                    "expected a body that contains `{}`",
                    lines.join("\n")
                ));
            }
        }
        let body = self.body_difference(&answer.body);
        let json = self.json_difference(&answer.body);
        if body.is_none() && json.is_none() && !differences.is_empty() {
            differences.push(shown(&answer.body));
        }
        differences.extend(body);
        differences.extend(json);
        differences
    }

    fn body_difference(&self, body: &[u8]) -> Option<String> {
        let expected = self.body.as_deref()?.as_bytes();
        if expected == body {
            return None;
        }
        // Without its last line break, a text often has the same lines.
        let ends = if expected.ends_with(b"\n") == body.ends_with(b"\n") {
            LineEnds::Hidden
        } else {
            LineEnds::Visible
        };
        let lines = difference(&plain_lines(expected, ends), &plain_lines(body, ends));
        Some(block(
            "expected the body with `-`, got the one with `+`",
            &lines,
        ))
    }

    fn json_difference(&self, body: &[u8]) -> Option<String> {
        let expected = self.json.as_ref()?;
        match serde_json::from_slice::<Value>(body) {
            Ok(json) if json == *expected => None,
            Ok(json) => Some(block(
                "expected the JSON with `-`, got that with `+`",
                &difference(&json_lines(expected), &json_lines(&json)),
            )),
            Err(error) => Some(block(
                &format!(
                    "expected the JSON with `-`, got the body with `+`, which is not JSON: {error}"
                ),
                &difference(&json_lines(expected), &plain_lines(body, LineEnds::Hidden)),
            )),
        }
    }
}

/// Shows a body that is not compared as a whole.
fn shown(body: &[u8]) -> String {
    if body.is_empty() {
        "the body is empty".to_owned()
    } else {
        block("the body", &listing(&body_lines(body)))
    }
}

/// Returns a heading with lines below it.
pub(super) fn block(heading: &str, lines: &[String]) -> String {
    let mut text = format!("{heading}:");
    for line in lines {
        text.push_str("\n  ");
        text.push_str(line);
    }
    text
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
                Some("expected the status 404, got 200\nthe body:\n  {\n    \"on\": true\n  }"),
            ),
            (
                "headers = { x-rail = \"3v\" }",
                Some("expected the header `x-rail: 3v`, got `5v`"),
            ),
            ("headers = { x-other = \"\" }", Some("got none")),
            (
                "body = \"on\"",
                Some(
                    "expected the body with `-`, got the one with `+`:\n  - on\n  + {\"on\":true}",
                ),
            ),
            (
                "contains = [\"off\"]",
                Some("expected a body that contains `off`\nthe body:\n  {"),
            ),
            (
                "json = { on = false }",
                Some(
                    "expected the JSON with `-`, got that with `+`:\n    {\n  -   \"on\": false\n  +   \"on\": true\n    }",
                ),
            ),
            ("json_text = '{\"on\": true}'", None),
            (
                "json_text = '{\"on\": null}'",
                Some("-   \"on\": null\n  +   \"on\": true"),
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

    fn differences(expected: &str, body: &[u8]) -> String {
        let answer = Answer {
            status: StatusCode::NOT_FOUND,
            headers: HeaderMap::new(),
            body: body.to_vec().into(),
        };
        let expectation: Expectation = toml::from_str(expected).unwrap();
        expectation.differences(&answer).join("\n")
    }

    #[test]
    fn the_body_is_shown_once_and_readable() {
        let message = b"{\"status\":\"failed\",\"message\":\"there is no such rail\"}";
        let all = "status = 200\ncontains = [\"rail 5v\", \"failed\"]\njson = { on = true }";
        assert_eq!(
            differences(all, message),
            "expected the status 200, got 404\n\
             expected a body that contains `rail 5v`\n\
             expected the JSON with `-`, got that with `+`:\n\
             \x20   {\n\
             \x20 -   \"on\": true\n\
             \x20 +   \"message\": \"there is no such rail\",\n\
             \x20 +   \"status\": \"failed\"\n\
             \x20   }"
        );
        assert_eq!(
            differences("status = 200", b"one\ntwo\n"),
            "expected the status 200, got 404\nthe body:\n  one\n  two"
        );
        assert_eq!(
            differences("status = 200", b"\xff\xfe"),
            "expected the status 200, got 404\nthe body:\n  ff fe"
        );
        assert_eq!(
            differences("status = 200", b""),
            "expected the status 200, got 404\nthe body is empty"
        );
        assert_eq!(
            differences("body = \"one\"", b"one\n"),
            "expected the body with `-`, got the one with `+`:\n  - one\n  + one\\n"
        );
        let not_json = differences("json = { on = true }", b"on");
        assert!(
            not_json.contains("`+`, which is not JSON: ") && not_json.ends_with("\n  + on"),
            "{not_json}"
        );
    }

    #[test]
    fn a_body_of_any_size_is_shown_within_bounds() {
        let many = "x\n".repeat(1 << 20);
        let long = "x".repeat(1 << 20);
        for body in [many, long] {
            for expected in ["status = 200", "body = \"y\"", "json = 1"] {
                let shown = differences(expected, body.as_bytes());
                assert!(shown.len() < 16 << 10, "{expected}: {}", shown.len());
            }
        }
    }

    #[test]
    fn json_is_expected_once() {
        let error = toml::from_str::<Expectation>("json = 1\njson_text = '1'");
        let error = error.unwrap_err().to_string();
        assert!(error.contains("it has `json` and `json_text`"), "{error}");
    }
}
