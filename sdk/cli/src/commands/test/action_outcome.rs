//! The outcome of an action: its output or its error, and what is expected of it.

use plugin_test_host::protocol::{ACTION_BYTES, OwnActionError};
use serde::Deserialize;
use serde_json::Value;

use super::body_lines::{LineEnds, body_lines, plain_lines};
use super::bytes_difference::bytes_difference;
use super::expectation::block;
use super::line_difference::listing;
use super::reason::ExpectedReason;
use crate::action_bytes::ActionBytes;
use crate::json_text::JsonText;

/// The outcome of a call.
#[derive(Debug, PartialEq, Eq, derive_more::Display)]
pub(crate) enum ActionOutcome {
    #[display("{}", shown(_0))]
    Output(Vec<u8>),
    /// The plugin's own words.
    #[display("that it refuses with {_0:?}")]
    Refused(String),
    /// What the device says about a plugin that crashed or exceeded a limit.
    #[display("that it fails with {_0:?}")]
    Failed(String),
}

impl From<Result<Vec<u8>, OwnActionError>> for ActionOutcome {
    fn from(answer: Result<Vec<u8>, OwnActionError>) -> ActionOutcome {
        match answer {
            Ok(output) => ActionOutcome::Output(output),
            Err(OwnActionError::Refused(why)) => ActionOutcome::Refused(why),
            Err(error) => ActionOutcome::Failed(error.to_string()),
        }
    }
}

/// The expected outcome; without a field, any output.
#[derive(Debug, Deserialize, derive_more::Display)]
#[serde(try_from = "AnswerToml")]
pub(crate) enum ExpectedOutcome {
    #[display("an output")]
    Output(ExpectedOutput),
    #[display("that it refuses {_0}")]
    Refused(ExpectedReason),
    #[display("that it fails {_0}")]
    Failed(ExpectedReason),
}

/// The parts of an output that are compared.
#[derive(Debug, Default)]
pub(crate) struct ExpectedOutput {
    /// All of it.
    pub(super) bytes: Option<ActionBytes>,
    /// Texts that it must contain.
    contains: Vec<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct AnswerToml {
    text: Option<String>,
    json: Option<Value>,
    json_text: Option<JsonText>,
    base64: Option<String>,
    #[serde(default)]
    contains: Vec<String>,
    refused: Option<ExpectedReason>,
    failed: Option<ExpectedReason>,
}

impl Default for ExpectedOutcome {
    fn default() -> Self {
        ExpectedOutcome::Output(ExpectedOutput::default())
    }
}

impl TryFrom<AnswerToml> for ExpectedOutcome {
    type Error = String;

    fn try_from(written: AnswerToml) -> Result<ExpectedOutcome, String> {
        let AnswerToml {
            text,
            json,
            json_text,
            base64,
            contains,
            refused,
            failed,
        } = written;
        let bytes = ActionBytes::from_keys(text, json, json_text, base64)?;
        let output = ExpectedOutput { bytes, contains };
        match (refused, failed) {
            (None, None) => Ok(ExpectedOutcome::Output(output)),
            (Some(reason), None) if output.is_any() => Ok(ExpectedOutcome::Refused(reason)),
            (None, Some(reason)) if output.is_any() => Ok(ExpectedOutcome::Failed(reason)),
            _ => Err(
                "its answer can be an output, or one of the errors `refused` and `failed`"
                    .to_owned(),
            ),
        }
    }
}

impl ExpectedOutcome {
    /// Describes in sentences how the outcome differs, and shows an output once.
    pub(super) fn differences(&self, outcome: &ActionOutcome) -> Vec<String> {
        match (self, outcome) {
            (ExpectedOutcome::Output(expected), ActionOutcome::Output(output)) => {
                expected.differences(output)
            }
            (ExpectedOutcome::Refused(expected), ActionOutcome::Refused(reason))
            | (ExpectedOutcome::Failed(expected), ActionOutcome::Failed(reason))
                if expected.matches(reason) =>
            {
                Vec::new()
            }
            (ExpectedOutcome::Output(expected), _) if !expected.contains.is_empty() => {
                let key = match outcome {
                    ActionOutcome::Refused(_) => "refused",
                    _ => "failed",
                };
                vec![format!(
                    "expected an output that contains texts, got {outcome}; if that is what the test expects, write `{key} = \
                     {{ contains = [...] }}`"
                )]
            }
            _ => vec![format!("expected {self}, got {outcome}")],
        }
    }
}

impl ExpectedOutput {
    fn is_any(&self) -> bool {
        self.bytes.is_none() && self.contains.is_empty()
    }

    fn differences(&self, output: &[u8]) -> Vec<String> {
        let text = String::from_utf8_lossy(output);
        let missing = self.contains.iter().filter(|part| !text.contains(*part));
        let mut differences: Vec<String> = missing
            .map(|part| {
                let lines = listing(&plain_lines(part.as_bytes(), LineEnds::Hidden));
                format!("expected an output that contains `{}`", lines.join("\n"))
            })
            .collect();
        let expected = self.bytes.as_ref();
        match expected.and_then(|bytes| bytes_difference(bytes, output)) {
            Some(lines) => differences.push(block(
                "expected the output with `-`, got the one with `+`",
                &lines,
            )),
            None if differences.is_empty() => {}
            None => differences.push(shown(output)),
        }
        differences
    }
}

/// Shows an output that is not compared as a whole.
fn shown(output: &[u8]) -> String {
    if output.is_empty() {
        "an empty output".to_owned()
    } else {
        block("the output", &listing(&body_lines(output)))
    }
}

/// Checks the length of an input.
///
/// # Errors
/// It is longer than a device accepts.
pub(super) fn check_input(input: &[u8]) -> Result<(), String> {
    if input.len() > ACTION_BYTES {
        return Err(format!(
            "its input has {} bytes, but an action takes at most {ACTION_BYTES}",
            input.len()
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expected(text: &str) -> Result<ExpectedOutcome, String> {
        toml::from_str(text).map_err(|error| error.to_string())
    }

    #[test]
    fn an_outcome_is_compared_by_what_is_expected_of_it() {
        let output = || ActionOutcome::Output(b"{\"name\":\"5v\",\"by\":null}".to_vec());
        let refused = || ActionOutcome::Refused("there is no rail `12v`".to_owned());
        let failed = || ActionOutcome::Failed("plugin `a` did not answer within 9 ms".to_owned());
        for (text, outcome, difference) in [
            ("", output(), ""),
            ("json_text = '{\"by\":null,\"name\":\"5v\"}'", output(), ""),
            ("contains = [\"5v\", \"by\"]", output(), ""),
            ("text = \"\"", ActionOutcome::Output(Vec::new()), ""),
            (
                "base64 = \"/wA=\"",
                ActionOutcome::Output(vec![0xff, 0]),
                "",
            ),
            ("refused = \"there is no rail `12v`\"", refused(), ""),
            (
                "failed = \"plugin `a` did not answer within 9 ms\"",
                failed(),
                "",
            ),
            (
                "refused = { contains = [\"no rail\", \"12v\"] }",
                refused(),
                "",
            ),
            ("failed = { contains = [\"within 9 ms\"] }", failed(), ""),
            (
                "refused = { contains = [\"5v\"] }",
                refused(),
                "expected that it refuses with a reason that contains \"5v\", got that it refuses with \"there is no rail `12v`\"",
            ),
            (
                "contains = [\"12v\"]",
                refused(),
                "got that it refuses with \"there is no rail `12v`\"; if that is what the test expects, write `refused = { contains \
                 = [...] }`",
            ),
            (
                "contains = [\"12v\"]",
                failed(),
                "write `failed = { contains = [...] }`",
            ),
            (
                "json = { name = \"5v\" }",
                output(),
                "expected the output with `-`, got the one with `+`:\n    {\n  +   \"by\": null,\n      \"name\": \"5v\"\n    }",
            ),
            (
                "contains = [\"12v\"]",
                output(),
                "expected an output that contains `12v`\nthe output:\n  {\n    \"by\": null,",
            ),
            (
                "contains = [\"12v\"]",
                ActionOutcome::Output(Vec::new()),
                "expected an output that contains `12v`\nan empty output",
            ),
            (
                "refused = \"there is no rail `12v`\"",
                output(),
                "expected that it refuses with \"there is no rail `12v`\", got the output:\n  {",
            ),
            (
                "",
                refused(),
                "expected an output, got that it refuses with \"there is no rail `12v`\"",
            ),
            (
                "refused = \"there is no rail\"",
                refused(),
                "expected that it refuses with \"there is no rail\", got that it refuses with",
            ),
            (
                "failed = \"there is no rail `12v`\"",
                refused(),
                "expected that it fails with \"there is no rail `12v`\", got that it refuses",
            ),
            (
                "refused = \"plugin `a` did not answer within 9 ms\"",
                failed(),
                "got that it fails with \"plugin `a` did not answer within 9 ms\"",
            ),
        ] {
            let found = expected(text).unwrap().differences(&outcome).join("\n");
            if difference.is_empty() {
                assert_eq!(found, "", "{text}");
            } else {
                assert!(found.contains(difference), "{difference}\nin\n{found}");
            }
        }
    }

    #[test]
    fn an_output_of_any_size_is_shown_within_bounds() {
        for output in ["x\n".repeat(1 << 18), "x".repeat(1 << 19)] {
            let outcome = ActionOutcome::Output(output.into_bytes());
            for text in ["text = \"y\"", "contains = [\"y\"]", "refused = \"y\""] {
                let shown = expected(text).unwrap().differences(&outcome).join("\n");
                assert!(shown.len() < 16 << 10, "{text}: {}", shown.len());
            }
        }
    }

    #[test]
    fn an_invalid_outcome_is_refused() {
        for (text, message) in [
            (
                "refused = \"a\"\nfailed = \"b\"",
                "can be an output, or one of",
            ),
            ("refused = \"a\"\njson = 1", "can be an output, or one of"),
            (
                "failed = \"a\"\ncontains = [\"b\"]",
                "can be an output, or one of",
            ),
            ("text = \"a\"\njson = 1", "it can have only one of `text`"),
            ("status = 200", "unknown field `status`"),
        ] {
            let error = expected(text).unwrap_err();
            assert!(error.contains(message), "{text}: {error}");
        }
    }
}
