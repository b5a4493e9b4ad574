//! What a registry answers: nothing but what was asked for, or why not, within bounds.

use reqwest::{Response, StatusCode};
use serde::Deserialize;

use super::access::Access;
use super::{MAX_ANSWER, Repository};
use crate::cloud::{bounded, message_in};
use crate::failure::{Failure, Result};

impl Repository<'_> {
    pub(super) async fn good(&self, answer: Response, what: &str) -> Result<Response> {
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
            StatusCode::NOT_FOUND => Failure::not_found(format!(
                "the registry {host} does not have {what}, in {}",
                self.place.repository
            )),
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => {
                let failure = Failure::not_allowed(format!(
                    "the registry {host} denied access to {what} of {}{words}",
                    self.place.repository
                ));
                match self.access {
                    Access::Kept(..) => failure.hint(format!(
                        "check the name; `docker login {host}` stores a credential for it"
                    )),
                    Access::Session(..) => failure,
                }
            }
            status => Failure::failed(format!("the registry {host} answered {status}{words}")),
        })
    }

    pub(super) async fn bounded(&self, answer: Response, most: usize) -> Result<Vec<u8>> {
        let bytes = bounded(answer, most).await;
        bytes
            .map_err(|error| self.unreachable(error))?
            .ok_or_else(|| self.failed("sent an answer that is too large"))
    }
}

/// What a registry says of a refusal.
fn message(body: &[u8]) -> Option<String> {
    #[derive(Deserialize)]
    struct ErrorBody {
        errors: Vec<ErrorEntry>,
    }
    #[derive(Deserialize)]
    struct ErrorEntry {
        message: Option<String>,
    }
    match serde_json::from_slice::<ErrorBody>(body) {
        Ok(body) => body.errors.into_iter().find_map(|one| one.message),
        Err(_) => message_in(body),
    }
}
