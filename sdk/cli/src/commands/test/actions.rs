//! The calls of other plugins' actions that the plugin of a test has made.
//!
//! ```toml
//! [[actions]]                     # all calls since the [[actions]] before, in their order
//! calls = [{ action = "acme-rails/set", json = { name = "5v", on = true } }]   # or text, json_text, base64
//! ```

use plugin_test_host::protocol::text::one_line;
use serde::Deserialize;
use serde_json::Value;

use super::body_lines::body_lines;
use super::bytes_difference::bytes_difference;
use super::expectation::block;
use super::line_difference::listing;
use crate::action_bytes::ActionBytes;
use crate::device_file::{OtherPlugins, RecordedCall};
use crate::json_text::JsonText;

/// The most bytes of an action's name that are shown.
const SHOWN_NAME: usize = 128;
/// The most differences that are shown.
const DIFFERENCES: usize = 10;

/// The calls that the plugin must have made by this point, exactly.
#[derive(derive_more::Display)]
#[display("actions")]
pub(crate) struct TestActions {
    /// The line at which it begins in its file, counted from 1.
    pub(crate) line: usize,
    calls: Vec<ExpectedCall>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ActionsToml {
    calls: Vec<ExpectedCall>,
}

#[derive(Debug, Deserialize)]
#[serde(try_from = "CallToml")]
struct ExpectedCall {
    action: String,
    /// Compared if present.
    input: Option<ActionBytes>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct CallToml {
    action: String,
    text: Option<String>,
    json: Option<Value>,
    json_text: Option<JsonText>,
    base64: Option<String>,
}

impl TryFrom<CallToml> for ExpectedCall {
    type Error = String;

    fn try_from(written: CallToml) -> Result<ExpectedCall, String> {
        let CallToml {
            action,
            text,
            json,
            json_text,
            base64,
        } = written;
        let input = ActionBytes::from_keys(text, json, json_text, base64)?;
        Ok(ExpectedCall { action, input })
    }
}

impl TestActions {
    pub(super) fn new(written: ActionsToml, line: usize) -> TestActions {
        TestActions {
            line,
            calls: written.calls,
        }
    }

    /// Describes how the calls differ from those that the plugin has made.
    pub(crate) fn differences(&self, other_plugins: &OtherPlugins) -> Vec<String> {
        let (calls, missing) = other_plugins.take_calls();
        let mut differences = self.differences_from(&calls);
        if missing > 0 {
            differences.push(format!(
                "the plugin has made {missing} more calls than this tool records"
            ));
        }
        if differences.len() > DIFFERENCES {
            let more = differences.len() - DIFFERENCES;
            differences.truncate(DIFFERENCES);
            differences.push(format!("and {more} more differences"));
        }
        differences
    }

    fn differences_from(&self, calls: &[RecordedCall]) -> Vec<String> {
        let mut differences = Vec::new();
        for (at, expected) in self.calls.iter().enumerate() {
            let number = at + 1;
            let difference = match calls.get(at) {
                Some(call) => expected.difference(call),
                None => Some("the plugin has not made it".to_owned()),
            };
            if let Some(difference) = difference {
                differences.push(format!(
                    "call {number}, of the action `{}`: {difference}",
                    expected.action
                ));
            }
        }
        for call in calls.iter().skip(self.calls.len()) {
            let input = if call.input.is_empty() {
                "without an input".to_owned()
            } else {
                block("with the input", &listing(&body_lines(&call.input)))
            };
            differences.push(format!(
                "the plugin has also called the action `{}` {input}",
                one_line(&call.action, SHOWN_NAME)
            ));
        }
        differences
    }
}

impl ExpectedCall {
    fn difference(&self, call: &RecordedCall) -> Option<String> {
        if self.action != call.action {
            let other = one_line(&call.action, SHOWN_NAME);
            return Some(format!("the plugin has called the action `{other}`"));
        }
        let lines = bytes_difference(self.input.as_ref()?, &call.input)?;
        Some(block(
            "expected the input with `-`, got the one with `+`",
            &lines,
        ))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    fn actions(text: &str) -> Result<TestActions, String> {
        let written = toml::from_str(text).map_err(|error| error.to_string())?;
        Ok(TestActions::new(written, 1))
    }

    fn call(action: &str, input: &[u8]) -> RecordedCall {
        RecordedCall {
            action: action.to_owned(),
            input: input.to_vec(),
        }
    }

    #[test]
    fn calls_are_compared_in_their_order_by_name_and_input() {
        let calls = [
            call("acme-rails/set", b"{\"on\":true,\"name\":null}"),
            call("acme-rails/list", b"all"),
            call("acme-rails/image", &[0xff, 0]),
        ];
        let set = r#"{ action = "acme-rails/set", json_text = '{"name":null,"on":true}' }"#;
        let list = r#"{ action = "acme-rails/list", text = "all" }"#;
        let image = r#"{ action = "acme-rails/image", base64 = "/wA=" }"#;
        for (expected, difference) in [
            (format!("{set}, {list}, {image}"), ""),
            (
                // Without an input, any is as expected.
                format!("{{ action = \"acme-rails/set\" }}, {list}, {image}"),
                "",
            ),
            (
                format!("{list}, {list}, {image}"),
                "call 1, of the action `acme-rails/list`: the plugin has called the action `acme-rails/set`",
            ),
            (
                format!("{set}, {}, {image}", list.replace("all", "some")),
                "call 2, of the action `acme-rails/list`: expected the input with `-`, got the one with `+`:\n  - some\n  + all",
            ),
            (
                format!("{}, {list}, {image}", set.replace("true", "false")),
                "call 1, of the action `acme-rails/set`: expected the input with `-`, got the one with `+`:\n    {\n      \
                 \"name\": null,\n  -   \"on\": false\n  +   \"on\": true\n    }",
            ),
            (
                format!("{set}, {list}, {}", image.replace("/wA=", "/wE=")),
                "got the one with `+`:\n  - ff 01\n  + ff 00",
            ),
            (
                format!("{set}, {list}"),
                "the plugin has also called the action `acme-rails/image` with the input:\n  ff 00",
            ),
            (
                format!("{set}, {list}, {image}, {list}"),
                "call 4, of the action `acme-rails/list`: the plugin has not made it",
            ),
        ] {
            let actions = actions(&format!("calls = [{expected}]")).unwrap();
            let found = actions.differences_from(&calls).join("\n");
            if difference.is_empty() {
                assert_eq!(found, "", "{expected}");
            } else {
                assert!(found.contains(difference), "{difference}\nin\n{found}");
            }
        }
    }

    #[test]
    fn a_flood_of_calls_is_shown_within_bounds() {
        let other_plugins =
            OtherPlugins::new(Default::default(), "device.toml".to_owned(), Arc::default());
        for _ in 0..1000 {
            let name = format!("a/{}\n", "x".repeat(10_000));
            other_plugins.answer(&name, vec![0xff; 10_000]).unwrap_err();
        }
        let differences = actions("calls = []").unwrap().differences(&other_plugins);
        assert_eq!(differences.len(), DIFFERENCES + 1);
        let shown = differences.join("\n");
        assert!(shown.len() < 64 << 10, "{}", shown.len());
        assert!(!shown.contains("x\n"), "{shown}");
    }

    #[test]
    fn an_invalid_call_is_refused() {
        for (text, expected) in [
            ("", "missing field `calls`"),
            ("calls = [{}]", "missing field `action`"),
            (
                "calls = [{ action = \"a/b\", body = \"\" }]",
                "unknown field `body`",
            ),
            (
                "calls = [{ action = \"a/b\", text = \"\", base64 = \"\" }]",
                "it can have only one of `text`",
            ),
        ] {
            let error = actions(text).err().unwrap();
            assert!(error.contains(expected), "{text}: {error}");
        }
    }
}
