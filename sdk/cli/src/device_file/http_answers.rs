//! The tables `[http]` and `[api]` of a device file: what other hosts and the device's own API answer.
//!
//! ```toml
//! [http]
//! "GET https://api.weather.example/now" = { status = 200, body = "21.5", after_ms = 2000 }
//! "GET https://api.weather.example/all" = { too_large = "the answer has more than 1 MiB" }
//! "GET https://down.example/" = { unreachable = "connection refused" }
//! ```

use std::time::Duration;

use plugin_test_host::protocol::text::LONGEST;
use serde::Deserialize;
use supervisor_testing::{Host, HttpError};

/// An answer of the device's own API.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ApiAnswer {
    #[serde(default = "ok")]
    status: u16,
    #[serde(default)]
    body: String,
}

fn ok() -> u16 {
    200
}

impl ApiAnswer {
    /// Adds the answer to a request to a host.
    pub(super) fn add_to(&self, host: Host, request: &str) -> Host {
        host.api_answer(request, self.status, self.body.clone())
    }
}

/// What becomes of a request to another host.
#[derive(Debug, Deserialize)]
#[serde(try_from = "HttpToml")]
pub(super) struct HttpExchange {
    delay: Duration,
    outcome: Result<(u16, String), HttpError>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct HttpToml {
    status: Option<u16>,
    body: Option<String>,
    /// How long the plugin waits for the answer or for the error, in milliseconds.
    #[serde(default)]
    after_ms: u32,
    unreachable: Option<String>,
    too_large: Option<String>,
}

impl TryFrom<HttpToml> for HttpExchange {
    type Error = String;

    fn try_from(written: HttpToml) -> Result<HttpExchange, String> {
        let has_answer = written.status.is_some() || written.body.is_some();
        let outcome = match (written.unreachable, written.too_large) {
            (None, None) => Ok((
                written.status.unwrap_or_else(ok),
                written.body.unwrap_or_default(),
            )),
            (Some(reason), None) if !has_answer => Err(HttpError::Unreachable(checked(reason)?)),
            (None, Some(reason)) if !has_answer => Err(HttpError::TooLarge(checked(reason)?)),
            _ => {
                return Err(
                    "another host answers `status` and `body`, or one of the errors `unreachable` and `too_large`"
                        .to_owned(),
                );
            }
        };
        Ok(HttpExchange {
            delay: Duration::from_millis(written.after_ms.into()),
            outcome,
        })
    }
}

/// Returns a reason that is not longer than those that a plugin receives.
fn checked(reason: String) -> Result<String, String> {
    if reason.len() > LONGEST {
        return Err(format!(
            "the error has {} bytes, but a plugin receives at most {LONGEST} of it",
            reason.len()
        ));
    }
    Ok(reason)
}

impl HttpExchange {
    /// Adds what becomes of a request to a host.
    pub(super) fn add_to(&self, host: Host, request: &str) -> Host {
        let outcome = self.outcome.clone();
        let outcome = outcome.map(|(status, body)| (status, body.into_bytes()));
        host.http_outcome(request, self.delay, outcome)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exchange(text: &str) -> Result<HttpExchange, String> {
        toml::from_str(text).map_err(|error| error.to_string())
    }

    #[test]
    fn another_host_answers_or_does_not_and_may_take_time() {
        let why = || "it is down".to_owned();
        for (text, outcome, milliseconds) in [
            ("", Ok((200, String::new())), 0),
            ("status = 404", Ok((404, String::new())), 0),
            (
                "body = \"21.5\"\nafter_ms = 9",
                Ok((200, "21.5".to_owned())),
                9,
            ),
            (
                "unreachable = \"it is down\"\nafter_ms = 60000",
                Err(HttpError::Unreachable(why())),
                60_000,
            ),
            (
                "too_large = \"it is down\"",
                Err(HttpError::TooLarge(why())),
                0,
            ),
        ] {
            let exchange = exchange(text).unwrap();
            assert_eq!(exchange.outcome, outcome, "{text}");
            assert_eq!(exchange.delay.as_millis(), milliseconds, "{text}");
        }
    }

    #[test]
    fn an_invalid_answer_is_refused() {
        let both = "or one of the errors `unreachable` and `too_large`";
        let long = format!("unreachable = \"{}\"", "x".repeat(LONGEST + 1));
        for (text, expected) in [
            ("unreachable = \"a\"\ntoo_large = \"b\"", both),
            ("unreachable = \"a\"\nstatus = 200", both),
            ("too_large = \"a\"\nbody = \"\"", both),
            ("after_ms = -1", "expected u32"),
            ("timeout = 1", "unknown field `timeout`"),
            (&*long, "a plugin receives at most 4096 of it"),
        ] {
            let error = exchange(text).unwrap_err();
            assert!(error.contains(expected), "{expected}: {error}");
        }
    }
}
