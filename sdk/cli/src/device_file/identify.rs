//! The table `[identify]` of a device file: the answer of the plugin that shows which device it is.
//!
//! ```toml
//! [identify]
//! after_ms = 15000                            # without it, at once
//! failed = "the device has no LED"            # without it, the device has identified itself
//! ```

use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt as _;
use plugin_test_host::AnswerChange;
use plugin_test_host::protocol::CapabilityAnswer as Answer;
use plugin_test_host::protocol::text::LONGEST;
use serde::Deserialize;

use super::hints::Hints;

/// What a plugin that has the device identify itself is answered.
#[derive(Debug, Clone, Deserialize)]
#[serde(try_from = "IdentifyToml")]
pub(super) struct IdentifyAnswer {
    delay: Duration,
    outcome: Result<(), String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct IdentifyToml {
    #[serde(default)]
    after_ms: u32,
    failed: Option<String>,
}

impl TryFrom<IdentifyToml> for IdentifyAnswer {
    type Error = String;

    fn try_from(written: IdentifyToml) -> Result<IdentifyAnswer, String> {
        if let Some(reason) = &written.failed
            && reason.len() > LONGEST
        {
            return Err(format!(
                "`failed` of `identify` has {} bytes, but a plugin receives at most {LONGEST} of it",
                reason.len()
            ));
        }
        Ok(IdentifyAnswer {
            delay: Duration::from_millis(written.after_ms.into()),
            outcome: written.failed.map_or(Ok(()), Err),
        })
    }
}

/// The provider of `identify` on a device whose plugin does not provide it.
#[derive(Clone)]
pub(crate) struct IdentifyProvider {
    /// Without an answer, the device has no such plugin.
    pub(super) answer: Option<IdentifyAnswer>,
    /// The device file, for people.
    pub(super) file: String,
    pub(super) hints: Arc<Hints>,
}

impl IdentifyProvider {
    /// Returns what replaces the answer of a device without a provider.
    pub(super) fn answer(&self) -> AnswerChange {
        let provider = self.clone();
        Box::new(move |_| {
            async move {
                if provider.answer.is_none() {
                    provider.hints.show(&provider.hint());
                }
                Answer::Identify(provider.identify().await)
            }
            .boxed()
        })
    }

    /// Waits as long as the device file says, and returns the outcome.
    ///
    /// # Errors
    /// The reason in the device file; without an answer, what to write into it.
    pub(crate) async fn identify(&self) -> Result<(), String> {
        let Some(IdentifyAnswer { delay, outcome }) = self.answer.clone() else {
            return Err(self.hint());
        };
        if !delay.is_zero() {
            tokio::time::sleep(delay).await;
        }
        outcome
    }

    fn hint(&self) -> String {
        format!(
            "no plugin of this device provides `identify`, and `{}` has no answer in its place: add a table [identify] to it, \
             for example with the line `after_ms = 15000`",
            self.file
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn answer(text: Option<&str>) -> (Result<(), String>, Duration, Vec<String>) {
        let hints = Arc::<Hints>::default();
        let provider = IdentifyProvider {
            answer: text.map(|text| toml::from_str(text).unwrap()),
            file: "device.toml".to_owned(),
            hints: Arc::clone(&hints),
        };
        let none = Answer::Identify(Err("there is no provider".to_owned()));
        let begun = tokio::time::Instant::now();
        let Answer::Identify(outcome) = provider.answer()(none).await else {
            panic!("it is an answer to another call");
        };
        (outcome, begun.elapsed(), hints.take())
    }

    #[tokio::test(start_paused = true)]
    async fn the_device_identifies_itself_as_the_file_says() {
        let failed = Err("it is dark".to_owned());
        for (text, expected, seconds) in [
            ("", Ok(()), 0),
            ("after_ms = 15000", Ok(()), 15),
            ("failed = \"it is dark\"", failed.clone(), 0),
            ("after_ms = 2000\nfailed = \"it is dark\"", failed, 2),
        ] {
            let (outcome, waited, hints) = answer(Some(text)).await;
            assert_eq!((outcome, waited.as_secs()), (expected, seconds), "{text}");
            assert!(hints.is_empty(), "{text}");
        }
        let (outcome, _, hints) = answer(None).await;
        let error = outcome.unwrap_err();
        assert!(error.contains("add a table [identify]"), "{error}");
        assert_eq!(hints, [error]);
    }

    #[test]
    fn an_invalid_answer_is_refused() {
        let long = format!("failed = \"{}\"", "x".repeat(LONGEST + 1));
        for (text, expected) in [
            ("after_ms = -1", "expected u32"),
            ("seconds = 1", "unknown field `seconds`"),
            (&*long, "a plugin receives at most 4096 of it"),
        ] {
            let error = toml::from_str::<IdentifyAnswer>(text).unwrap_err();
            assert!(error.to_string().contains(expected), "{text}: {error}");
        }
    }
}
