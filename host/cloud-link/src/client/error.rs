//! Why a request to the cloud failed.

use std::error::Error;
use std::time::Duration;

use http::StatusCode;

use crate::payload;

/// Why a request to the cloud failed. The text contains no key and no part of a target.
#[derive(Debug, thiserror::Error)]
pub enum CloudError {
    /// The device has no number at its cloud yet; nothing was sent.
    #[error("this device is not registered with its cloud")]
    Unprovisioned,
    /// No connection could be made, or it broke before the answer was complete.
    #[error("the cloud cannot be reached")]
    Unreachable(#[source] Box<dyn Error + Send + Sync>),
    /// The answer took longer than its limit to begin, or to end.
    #[error("the cloud did not {what} within {} s", limit.as_secs_f64())]
    Timeout {
        /// What was not done in time, as the rest of a sentence.
        what: &'static str,
        /// The exceeded limit.
        limit: Duration,
    },
    /// The cloud refused, with a status other than success or 304.
    #[error("the cloud answered {status}{}", as_suffix(reason))]
    Status {
        /// The status of the answer.
        status: StatusCode,
        /// How long the cloud asks for no further request.
        retry_after: Option<Duration>,
        /// The beginning of the answer's text.
        reason: String,
    },
    /// The body is too large, cannot be unpacked, or is not JSON.
    #[error("the cloud's answer cannot be used")]
    Payload(#[from] payload::PayloadError),
    /// The answer does not have the expected form: this one, as the end of a sentence.
    #[error("the cloud's answer is not {0}")]
    Shape(&'static str),
    /// The data cannot be sent.
    #[error("{0}")]
    Invalid(String),
}

impl CloudError {
    /// How long the cloud asks for no further request.
    #[must_use]
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            CloudError::Status { retry_after, .. } => *retry_after,
            _ => None,
        }
    }

    /// Whether the same request would be refused again at any time.
    #[must_use]
    pub fn is_final(&self) -> bool {
        let status = self.status();
        self.is_rejection()
            && !matches!(status, Some(StatusCode::FORBIDDEN | StatusCode::NOT_FOUND))
    }

    /// Whether the cloud rejects the data, for a reason other than its sender or the time.
    pub(crate) fn is_rejection(&self) -> bool {
        use StatusCode as S;
        match self {
            CloudError::Invalid(_) => true,
            CloudError::Status { status, .. } => {
                let may_change = [S::UNAUTHORIZED, S::REQUEST_TIMEOUT, S::TOO_MANY_REQUESTS];
                status.is_client_error() && !may_change.contains(status)
            }
            _ => false,
        }
    }

    /// Returns the status of the cloud's refusal.
    pub(crate) fn status(&self) -> Option<StatusCode> {
        match self {
            CloudError::Status { status, .. } => Some(*status),
            _ => None,
        }
    }
}

fn as_suffix(reason: &str) -> String {
    match reason {
        "" => String::new(),
        reason => format!(": {reason}"),
    }
}

/// Removes the URL: a log has it already, and the identity in it.
pub(super) fn unreachable(error: reqwest::Error) -> CloudError {
    CloudError::Unreachable(error.without_url().into())
}
