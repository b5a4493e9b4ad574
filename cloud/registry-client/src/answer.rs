//! Answers of registries: the expected content or the reason for a failure, within bounds.

use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use reqwest::{Body, Response, StatusCode};
use serde::Deserialize;

use crate::access::Account;
use crate::error::{ErrorKind, RegistryError, Result};
use crate::repository::Repository;

/// The maximum length in bytes of an answer that is neither a manifest nor a blob.
pub(crate) const MAX_ANSWER: usize = 64 << 10;
/// The maximum length of a registry's message that is passed on, in characters.
const LONGEST: usize = 1000;

impl Repository<'_> {
    /// Returns the answer if its status is a success; `what` was requested.
    ///
    /// # Errors
    /// What the registry says if it is not.
    pub(crate) async fn require_success(&self, answer: Response, what: &str) -> Result<Response> {
        let status = answer.status();
        if status.is_success() {
            return Ok(answer);
        }
        let host = &self.place.host;
        let body = self.bounded(answer, MAX_ANSWER).await.unwrap_or_default();
        let words = message(&body)
            .map(|words| format!(": {words}"))
            .unwrap_or_default();
        Err(match status {
            StatusCode::NOT_FOUND => RegistryError::new(
                ErrorKind::NotFound,
                format!(
                    "the registry {host} does not have {what}, in {}",
                    self.place.repository
                ),
            ),
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => {
                let error = RegistryError::new(
                    ErrorKind::Denied,
                    format!(
                        "the registry {host} denied access to {what} of {}{words}",
                        self.place.repository
                    ),
                );
                match self.access.account {
                    Account::Stored(_) => error.hint(format!(
                        "check the name; `docker login {host}` stores a credential for it"
                    )),
                    Account::Tokens(_) => error,
                }
            }
            status => {
                RegistryError::failed(format!("the registry {host} answered {status}{words}"))
            }
        })
    }

    /// Reads the body of an answer.
    ///
    /// # Errors
    /// It is longer than `most` bytes, or ends early.
    pub(crate) async fn bounded(&self, answer: Response, most: usize) -> Result<Vec<u8>> {
        let body = Limited::new(Body::from(answer), most).collect().await;
        match body {
            Ok(bytes) => Ok(bytes.to_bytes().into()),
            Err(error) if error.is::<LengthLimitError>() => {
                Err(self.failed("sent an answer that is too large"))
            }
            Err(error) => Err(self.failed("cannot be reached").because(error)),
        }
    }
}

/// Returns what a registry, or a proxy in front of it, says in a refusal: its first error, an object's `error` or
/// `message`, or short text.
fn message(body: &[u8]) -> Option<String> {
    #[derive(Deserialize)]
    struct ErrorBody {
        #[serde(default)]
        errors: Vec<ErrorEntry>,
        error: Option<String>,
        message: Option<String>,
    }
    #[derive(Deserialize)]
    struct ErrorEntry {
        message: Option<String>,
    }
    let text = match serde_json::from_slice::<ErrorBody>(body) {
        Ok(body) => {
            let first = body.errors.into_iter().find_map(|entry| entry.message);
            first.or(body.error).or(body.message)?
        }
        Err(_) => String::from_utf8(body.to_vec()).ok()?,
    };
    let text = text.trim();
    // The HTML page of a proxy helps nobody.
    let is_sentence = !text.is_empty() && !text.starts_with('<');
    is_sentence.then(|| text.chars().take(LONGEST).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_is_passed_on_in_the_registrys_words() {
        for (body, expected) in [
            (
                r#"{"errors":[{"code":"DENIED","message":"not yours"}]}"#,
                Some("not yours"),
            ),
            (r#"{"error":"too much"}"#, Some("too much")),
            (r#"{"message":"later"}"#, Some("later")),
            ("plain words\n", Some("plain words")),
            ("<html>x</html>", None),
            ("{}", None),
            ("", None),
        ] {
            assert_eq!(message(body.as_bytes()).as_deref(), expected, "{body}");
        }
    }
}
