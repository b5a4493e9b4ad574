//! An event on the device of a test (`device_event.rs`), and the answer that the plugin must return.
//!
//! ```toml
//! [[event]]
//! update_gate = { services = ["press"] }      # or another key of `EventToml`
//! answer = { postpone = "the press is running", seconds = 60 }
//! ```

use anyhow::{Result, ensure};
use plugin_manifest::Manifest;
use plugin_test_host::RunningHost;

use super::device_event::{DeviceEvent, EventOutcome, EventToml};
use super::gate_answer::ExpectedGateAnswer;

/// An event and its expected answer.
#[derive(derive_more::Display)]
#[display("{event}")]
pub(crate) struct TestEvent {
    /// The line at which it begins in its file, counted from 1.
    pub(crate) line: usize,
    event: DeviceEvent,
    answer: ExpectedGateAnswer,
}

impl TestEvent {
    pub(super) fn new(written: EventToml, line: usize) -> Result<TestEvent> {
        let (event, answer) = written.into_event()?;
        ensure!(
            event.is_for_gates() || answer.is_none(),
            "it has an `answer`, and only the answers to `update_gate` and `health_gate` count"
        );
        let answer = answer.unwrap_or_default();
        ensure!(
            answer.postpone.is_none() || answer.refuse.is_none(),
            "its answer can be one of `postpone` and `refuse`"
        );
        ensure!(
            answer.seconds.is_none() || answer.postpone.is_some(),
            "`seconds` of its answer goes with `postpone`"
        );
        Ok(TestEvent {
            line,
            event,
            answer,
        })
    }

    /// Triggers the event, and compares the answer. Events other than gates must not fail.
    pub(crate) async fn differences(&self, host: &RunningHost, manifest: &Manifest) -> Vec<String> {
        let (outcome, missed) = match self.event.outcome(host, manifest).await {
            Ok(triggered) => triggered,
            Err(reason) => return vec![reason],
        };
        let difference = match outcome {
            EventOutcome::Gate(answer) => self.answer.differences(&answer),
            EventOutcome::Answered => None,
            EventOutcome::Failed(reason) => Some(format!("expected no failure, got {reason}")),
            EventOutcome::Late(reason) => Some(reason),
        };
        difference.into_iter().chain(missed).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(text: &str) -> Result<TestEvent> {
        TestEvent::new(toml::from_str(text)?, 1)
    }

    #[test]
    fn invalid_events_are_refused() {
        for (text, expected) in [
            ("", "it must have one of `start`"),
            ("start = true\nconnection = true", "it must have one of"),
            ("start = true\nanswer = {}", "only the answers to"),
            ("health_gate = {}", "missing field `commit`"),
            (
                "update_gate = { services = [], force = true }",
                "unknown field `force`",
            ),
            ("target = \"gone\"", "unknown variant `gone`"),
            (
                "update_gate = {}\nanswer = { postpone = \"a\", refuse = \"b\" }",
                "can be one of",
            ),
            (
                "update_gate = {}\nanswer = { seconds = 9 }",
                "goes with `postpone`",
            ),
        ] {
            let error = format!("{:#}", event(text).err().unwrap());
            assert!(error.contains(expected), "{text}: {error}");
        }
    }
}
