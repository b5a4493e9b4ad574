//! The table `[actions]` of a device file: what other plugins' actions answer, and a record of the calls of them.
//!
//! ```toml
//! [actions]
//! "acme-rails/set" = { json = true }                          # or text, json_text, base64
//! "acme-rails/reset" = { refused = "the press is running" }   # or not_granted, unavailable, invalid, failed
//! ```

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;
use plugin_manifest::{check_action_name, check_name};
use plugin_test_host::protocol::text::{LONGEST, one_line};
use plugin_test_host::protocol::{ACTION_BYTES, OwnActionError};
use serde::Deserialize;
use serde_json::Value;

use super::hints::Hints;
use crate::action_bytes::ActionBytes;
use crate::json_text::JsonText;

/// The most actions of a device file.
const ACTIONS: usize = 64;
/// The most calls that are recorded until a test compares them.
const CALLS: usize = 256;
/// The most bytes of the inputs of these calls together.
const INPUT_BYTES: usize = 16 << 20;
/// The most bytes of an action's name that are shown.
const SHOWN_NAME: usize = 128;

/// The answers of other plugins' actions, by the full names of the actions.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(try_from = "BTreeMap<String, ActionAnswer>")]
pub(crate) struct ActionAnswers(BTreeMap<String, ActionAnswer>);

/// What an action answers.
#[derive(Debug, Clone, Deserialize)]
#[serde(try_from = "AnswerToml")]
struct ActionAnswer(Result<Vec<u8>, OwnActionError>);

/// Exactly one of these is present; the first four are the output.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct AnswerToml {
    text: Option<String>,
    json: Option<Value>,
    json_text: Option<JsonText>,
    base64: Option<String>,
    not_granted: Option<String>,
    unavailable: Option<String>,
    invalid: Option<String>,
    refused: Option<String>,
    failed: Option<String>,
}

impl TryFrom<AnswerToml> for ActionAnswer {
    type Error = String;

    fn try_from(written: AnswerToml) -> Result<ActionAnswer, String> {
        let AnswerToml {
            text,
            json,
            json_text,
            base64,
            not_granted,
            unavailable,
            invalid,
            refused,
            failed,
        } = written;
        let output = ActionBytes::from_keys(text, json, json_text, base64)?;
        let errors = [
            not_granted.map(OwnActionError::NotGranted),
            unavailable.map(OwnActionError::Unavailable),
            invalid.map(OwnActionError::Invalid),
            refused.map(OwnActionError::Refused),
            failed.map(OwnActionError::Failed),
        ];
        let mut errors = errors.into_iter().flatten();
        match (output, errors.next(), errors.next()) {
            (Some(output), None, _) => {
                let output = output.into_bytes();
                if output.len() > ACTION_BYTES {
                    return Err(format!(
                        "the answer has {} bytes, but an action answers at most {ACTION_BYTES}",
                        output.len()
                    ));
                }
                Ok(ActionAnswer(Ok(output)))
            }
            (None, Some(error), None) => {
                let length = error.to_string().len();
                if length > LONGEST {
                    return Err(format!(
                        "the error has {length} bytes, but a plugin receives at most {LONGEST} of it"
                    ));
                }
                Ok(ActionAnswer(Err(error)))
            }
            _ => Err(
                "an action answers one of `text`, `json`, `json_text` and `base64`, or one of the errors `not_granted`, \
                 `unavailable`, `invalid`, `refused` and `failed`"
                    .to_owned(),
            ),
        }
    }
}

impl TryFrom<BTreeMap<String, ActionAnswer>> for ActionAnswers {
    type Error = String;

    fn try_from(answers: BTreeMap<String, ActionAnswer>) -> Result<ActionAnswers, String> {
        if answers.len() > ACTIONS {
            let number = answers.len();
            return Err(format!(
                "`actions` has {number} actions, but at most {ACTIONS} are allowed"
            ));
        }
        match answers.keys().find(|name| !is_action(name)) {
            Some(name) => Err(format!(
                "`actions` has `{}`: write the plugin's name, a slash and the action's name, such as `acme-rails/set`",
                one_line(name, SHOWN_NAME)
            )),
            None => Ok(ActionAnswers(answers)),
        }
    }
}

/// Returns whether this is the full name of an action.
fn is_action(name: &str) -> bool {
    name.split_once('/').is_some_and(|(plugin, action)| {
        check_name(plugin).is_ok() && check_action_name(action).is_ok()
    })
}

/// Answers calls of actions that no plugin of the device provides, and records them for tests.
pub(crate) struct OtherPlugins {
    answers: ActionAnswers,
    /// The device file, for people.
    file: String,
    hints: Arc<Hints>,
    record: Mutex<Record>,
}

#[derive(Default)]
struct Record {
    calls: Vec<RecordedCall>,
    input_bytes: usize,
    /// How many calls are not among `calls`, because a limit was reached.
    missing: usize,
}

/// A call of an action.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RecordedCall {
    /// The full name of the action; it may be any text.
    pub(crate) action: String,
    pub(crate) input: Vec<u8>,
}

impl OtherPlugins {
    /// Creates plugins with these answers from this file.
    pub(crate) fn new(answers: ActionAnswers, file: String, hints: Arc<Hints>) -> OtherPlugins {
        OtherPlugins {
            answers,
            file,
            hints,
            record: Mutex::default(),
        }
    }

    /// Answers a call as the device file says, and without an answer as a device without that plugin.
    pub(crate) fn answer(&self, action: &str, input: Vec<u8>) -> Result<Vec<u8>, OwnActionError> {
        if input.len() > ACTION_BYTES {
            let why = format!("the input has more than {} KiB", ACTION_BYTES >> 10);
            return Err(OwnActionError::Invalid(why));
        }
        self.record.lock().add(action, input);
        match self.answers.0.get(action) {
            Some(ActionAnswer(answer)) => answer.clone(),
            None => {
                let name = one_line(action, SHOWN_NAME);
                self.hints.show(&self.hint(action, &name));
                Err(OwnActionError::Unavailable(format!(
                    "no plugin of this device provides `{name}`"
                )))
            }
        }
    }

    /// Says that an action has no answer, and how to give it one.
    fn hint(&self, action: &str, name: &str) -> String {
        let file = &self.file;
        if is_action(action) {
            format!(
                "the plugin calls the action `{name}`, and `{file}` has no answer for it: add for example \
                 `\"{name}\" = {{ json = true }}` to its table [actions]"
            )
        } else {
            format!(
                "the plugin calls the action `{name}`, and that is not the name of an action: it must be the name of a plugin, \
                 a slash and the action's name, such as `acme-rails/set`"
            )
        }
    }

    /// Returns the calls since the last time, oldest first, and how many more there were.
    pub(crate) fn take_calls(&self) -> (Vec<RecordedCall>, usize) {
        let mut record = self.record.lock();
        record.input_bytes = 0;
        let calls = std::mem::take(&mut record.calls);
        (calls, std::mem::take(&mut record.missing))
    }
}

impl Record {
    fn add(&mut self, action: &str, input: Vec<u8>) {
        let bytes = self.input_bytes + action.len() + input.len();
        if self.calls.len() == CALLS || bytes > INPUT_BYTES {
            self.missing = self.missing.saturating_add(1);
            return;
        }
        self.input_bytes = bytes;
        self.calls.push(RecordedCall {
            action: action.to_owned(),
            input,
        });
    }
}

#[cfg(test)]
mod tests;
