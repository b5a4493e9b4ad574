//! The reason of a refusal or of a failure, as a test expects it.
//!
//! ```toml
//! answer = { refused = "there is no rail `12v`" }     # the whole reason
//! answer = { refused = { contains = ["12v"] } }       # texts that it must contain
//! ```

use std::fmt;

use serde::Deserialize;

/// What is expected of a reason.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(
    untagged,
    expecting = "a reason is a text, or texts that it must contain, such as `{ contains = [\"12v\"] }`"
)]
pub(crate) enum ExpectedReason {
    Whole(String),
    Part(ReasonPart),
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ReasonPart {
    contains: Vec<String>,
}

impl ExpectedReason {
    pub(super) fn matches(&self, reason: &str) -> bool {
        match self {
            ExpectedReason::Whole(expected) => expected == reason,
            ExpectedReason::Part(ReasonPart { contains }) => {
                contains.iter().all(|part| reason.contains(part))
            }
        }
    }
}

/// The end of a sentence such as "that it refuses".
impl fmt::Display for ExpectedReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ExpectedReason::Whole(reason) => write!(f, "with {reason:?}"),
            ExpectedReason::Part(ReasonPart { contains }) => {
                let parts: Vec<String> = contains.iter().map(|part| format!("{part:?}")).collect();
                write!(f, "with a reason that contains {}", parts.join(" and "))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Deserialize)]
    struct Answer {
        refused: ExpectedReason,
    }

    #[test]
    fn a_reason_is_compared_as_a_whole_or_by_the_texts_that_it_contains() {
        for (text, expected, shown) in [
            ("\"no rail 12v\"", true, "with \"no rail 12v\""),
            ("\"no rail\"", false, "with \"no rail\""),
            (
                "{ contains = [\"rail\", \"12v\"] }",
                true,
                "with a reason that contains \"rail\" and \"12v\"",
            ),
            (
                "{ contains = [\"rail\", \"5v\"] }",
                false,
                "with a reason that contains \"rail\" and \"5v\"",
            ),
        ] {
            let answer: Answer = toml::from_str(&format!("refused = {text}")).unwrap();
            assert_eq!(answer.refused.matches("no rail 12v"), expected, "{text}");
            assert_eq!(answer.refused.to_string(), shown);
        }
        for text in ["1", "{}", "{ contains = \"12v\" }", "{ text = \"12v\" }"] {
            let error = toml::from_str::<Answer>(&format!("refused = {text}")).unwrap_err();
            let expected = "a reason is a text, or texts that it must contain";
            assert!(error.to_string().contains(expected), "{text}: {error}");
        }
    }
}
