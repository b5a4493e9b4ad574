//! Why the cloud did not answer.

use std::error::Error;
use std::time::Duration;

use http::StatusCode;

use crate::payload;

/// Why the cloud did not answer what it was asked. The text says no key and no part of a target.
#[derive(Debug, thiserror::Error)]
pub enum CloudError {
    /// The device has no number at its cloud yet: nothing was sent.
    #[error("this device is not registered with its cloud")]
    Unprovisioned,
    /// No connection could be made, or it broke before the answer was whole.
    #[error("the cloud cannot be reached")]
    Unreachable(#[source] Box<dyn Error + Send + Sync>),
    /// It took longer than its limit to begin its answer, or to end it.
    #[error("the cloud did not {what} within {} s", limit.as_secs_f64())]
    Timeout {
        /// What it did not do in time, as the rest of a sentence.
        what: &'static str,
        /// The limit that it did not keep.
        limit: Duration,
    },
    /// The cloud refused: with any status but a success or 304.
    #[error("the cloud answered {status}{}", as_suffix(reason))]
    Status {
        /// The status of the answer.
        status: StatusCode,
        /// How long the cloud wants not to be asked again.
        retry_after: Option<Duration>,
        /// The beginning of its text.
        reason: String,
    },
    /// The body is too large, cannot be unpacked, or is no JSON.
    #[error("the cloud's answer cannot be used")]
    Payload(#[from] payload::PayloadError),
    /// The answer has another form than it was asked for: this one, as the end of a sentence.
    #[error("the cloud's answer is not {0}")]
    Shape(&'static str),
    /// What was to be sent is not what can be.
    #[error("{0}")]
    Invalid(String),
}

impl CloudError {
    /// How long the cloud wants not to be asked again.
    #[must_use]
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            CloudError::Status { retry_after, .. } => *retry_after,
            _ => None,
        }
    }

    /// Whether the same request would be refused again, whenever it is made.
    #[must_use]
    pub fn is_final(&self) -> bool {
        let status = self.status();
        self.is_rejection()
            && !matches!(status, Some(StatusCode::FORBIDDEN | StatusCode::NOT_FOUND))
    }

    /// Whether the cloud does not take what was sent, for another reason than who sent it or when.
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

    /// What the cloud refused with.
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

/// Without the URL: a log has it once already, and the identity in it.
pub(super) fn unreachable(error: reqwest::Error) -> CloudError {
    CloudError::Unreachable(error.without_url().into())
}
