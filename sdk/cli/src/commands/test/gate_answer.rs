//! The answer of a gate (`wit/events.wit`), and what a test expects of it.

use std::fmt;
use std::time::Duration;

use serde::Deserialize;

use super::reason::ExpectedReason;

/// The answer of a gate.
#[derive(Debug, PartialEq, Eq, derive_more::Display)]
pub(crate) enum GateAnswer {
    #[display("that it goes on")]
    GoOn,
    #[display("that it postpones by {} s with {_0:?}", _1.as_secs())]
    Postpone(String, Duration),
    #[display("that it refuses with {_0:?}")]
    Refuse(String),
}

/// The expected answer of a gate; if it is empty, the app may be disturbed or the release is healthy.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ExpectedGateAnswer {
    pub(super) postpone: Option<ExpectedReason>,
    /// Compared if present.
    pub(super) seconds: Option<u64>,
    pub(super) refuse: Option<ExpectedReason>,
}

impl ExpectedGateAnswer {
    /// Describes in a sentence how the answer differs.
    pub(super) fn differences(&self, answer: &GateAnswer) -> Option<String> {
        let is_as_expected = match (&self.postpone, &self.refuse, answer) {
            (Some(reason), None, GateAnswer::Postpone(given, delay)) => {
                reason.matches(given)
                    && self
                        .seconds
                        .is_none_or(|seconds| delay.as_secs() == seconds)
            }
            (None, Some(reason), GateAnswer::Refuse(given)) => reason.matches(given),
            (None, None, GateAnswer::GoOn) => true,
            _ => false,
        };
        (!is_as_expected).then(|| format!("expected {self}, got {answer}"))
    }
}

impl fmt::Display for ExpectedGateAnswer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.postpone, &self.refuse, self.seconds) {
            (Some(reason), _, Some(seconds)) => {
                write!(f, "that it postpones by {seconds} s {reason}")
            }
            (Some(reason), _, None) => write!(f, "that it postpones {reason}"),
            (None, Some(reason), _) => write!(f, "that it refuses {reason}"),
            (None, None, _) => f.write_str("that it goes on"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_compared_by_what_is_expected_of_it() {
        let postponed = || GateAnswer::Postpone("it runs".to_owned(), Duration::from_secs(60));
        let refused = || GateAnswer::Refuse("it is blank".to_owned());
        for (expected, answer, difference) in [
            ("", GateAnswer::GoOn, None),
            ("postpone = \"it runs\"", postponed(), None),
            ("postpone = \"it runs\"\nseconds = 60", postponed(), None),
            ("refuse = \"it is blank\"", refused(), None),
            ("refuse = { contains = [\"blank\"] }", refused(), None),
            (
                "postpone = { contains = [\"runs\"] }\nseconds = 60",
                postponed(),
                None,
            ),
            (
                "refuse = { contains = [\"black\"] }",
                refused(),
                Some(
                    "expected that it refuses with a reason that contains \"black\", got that it refuses with \"it is blank\"",
                ),
            ),
            (
                "",
                postponed(),
                Some("expected that it goes on, got that it postpones by 60 s with \"it runs\""),
            ),
            (
                "postpone = \"it runs\"\nseconds = 30",
                postponed(),
                Some(
                    "expected that it postpones by 30 s with \"it runs\", got that it postpones by 60 s",
                ),
            ),
            (
                "refuse = \"it is black\"",
                refused(),
                Some("expected that it refuses with \"it is black\", got that it refuses"),
            ),
            (
                "refuse = \"a\"",
                GateAnswer::GoOn,
                Some("got that it goes on"),
            ),
        ] {
            let found = toml::from_str::<ExpectedGateAnswer>(expected)
                .unwrap()
                .differences(&answer);
            match difference {
                None => assert_eq!(found, None, "{expected}"),
                Some(difference) => {
                    let found = found.unwrap();
                    assert!(found.contains(difference), "{expected}: {found}");
                }
            }
        }
    }
}
