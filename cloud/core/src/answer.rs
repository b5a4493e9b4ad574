//! Answers in the format of the data API: errors are JSON strings
//! (docs/spec/cloud.md#odata-answers).

use axum::body::Body;
use axum::response::{IntoResponse, Response};
use data::DataError;
use data::query::QueryError;
use data::write::WriteError;
use http::{HeaderValue, StatusCode, header};
use serde_json::Value;

use crate::unreadable;

/// The answer to a request.
pub type Answer = Result<Response, Refusal>;

/// Why a request was refused or failed.
#[derive(Debug)]
pub enum Refusal {
    /// 400: the request is invalid, or a rule forbids it.
    Wrong(String),
    /// 401 without a message: no rights, or no valid credential.
    Unauthorized,
    /// 401 with a message for clients that evaluate it.
    UnauthorizedSaying(&'static str),
    /// 403: not permitted for this row.
    Forbidden(String),
    /// 404.
    Missing(String),
    /// 408: the request's body did not arrive in time.
    TooSlow,
    /// 409: conflicts with another row.
    Conflict(String),
    /// 413.
    TooLarge(usize),
    /// 415.
    ContentType(&'static str),
    /// 429: the client should retry after this many seconds.
    TooMany(u64),
    /// 503: the client should retry after this many seconds.
    Unavailable(String),
    /// 502: a device gave no answer.
    Unreached(String),
    /// 500; the cause is only written to the log.
    Fault(anyhow::Error),
}

impl From<QueryError> for Refusal {
    fn from(error: QueryError) -> Self {
        match error {
            QueryError::Refused(error) => Refusal::Wrong(error.message),
            QueryError::NoRights(_) => Refusal::Unauthorized,
            broken @ QueryError::Broken(_) => Refusal::Fault(broken.into()),
        }
    }
}

impl From<odata::ParseError> for Refusal {
    fn from(error: odata::ParseError) -> Self {
        Refusal::Wrong(error.message)
    }
}

impl From<DataError> for Refusal {
    fn from(error: DataError) -> Self {
        match error {
            DataError::Busy(_) => Refusal::database_away(),
            // After a change that was interrupted, only reading the data again shows the result.
            DataError::Lost(error) => {
                tracing::warn!("the connection to the database was lost: {error}");
                Refusal::Unavailable(
                    "the connection to the database was lost; the change may or may not have been made: check, and try again"
                        .to_owned(),
                )
            }
            error @ DataError::Silent(_) => {
                tracing::warn!("{error}");
                Refusal::Unavailable(format!(
                    "{error}; the change may or may not have been made: check, and try again"
                ))
            }
            error @ DataError::Contended(_) => Refusal::Unavailable(error.to_string()),
            error @ (DataError::OutOfRange(_)
            | DataError::TooLarge(_)
            | DataError::TooComplex(_)) => Refusal::Wrong(error.to_string()),
            error @ (DataError::TooSlow(_) | DataError::Full(_)) => {
                Refusal::Unavailable(error.to_string())
            }
            DataError::Unreadable(error) => {
                // There are many callers, such as the devices of a fleet, and they all retry.
                unreadable::log(&error);
                Refusal::Unavailable(
                    "a secret cannot be decrypted; the log of the cloud says which".to_owned(),
                )
            }
            error => Refusal::Fault(error.into()),
        }
    }
}

impl Refusal {
    /// Reports that no connection to the database became available in time.
    pub fn database_away() -> Self {
        Refusal::Unavailable(
            "the database is busy or unavailable, and nothing was changed; try again".to_owned(),
        )
    }

    /// Returns the parts of the answer, with its message as text.
    pub fn parts(self) -> (StatusCode, Option<String>, Option<u64>) {
        let retry_after = match &self {
            Refusal::TooMany(after) => Some(*after),
            Refusal::Unavailable(_) => Some(1),
            _ => None,
        };
        let (status, why) = match self {
            Refusal::Wrong(why) => (StatusCode::BAD_REQUEST, why),
            Refusal::Unauthorized => return (StatusCode::UNAUTHORIZED, None, None),
            Refusal::UnauthorizedSaying(why) => (StatusCode::UNAUTHORIZED, why.to_owned()),
            Refusal::Forbidden(why) => (StatusCode::FORBIDDEN, why),
            Refusal::Missing(why) => (StatusCode::NOT_FOUND, why),
            Refusal::TooSlow => {
                let why = "The body did not arrive in time.".to_owned();
                (StatusCode::REQUEST_TIMEOUT, why)
            }
            Refusal::Conflict(why) => (StatusCode::CONFLICT, why),
            Refusal::TooLarge(most) => {
                let why = format!("The body has more than {most} bytes.");
                (StatusCode::PAYLOAD_TOO_LARGE, why)
            }
            Refusal::ContentType(required) => {
                let why = format!("The body must be {required}.");
                (StatusCode::UNSUPPORTED_MEDIA_TYPE, why)
            }
            Refusal::TooMany(_) => {
                let why = "Too Many Requests".to_owned();
                (StatusCode::TOO_MANY_REQUESTS, why)
            }
            Refusal::Unavailable(why) => (StatusCode::SERVICE_UNAVAILABLE, why),
            Refusal::Unreached(why) => (StatusCode::BAD_GATEWAY, why),
            Refusal::Fault(error) => {
                tracing::error!("a request failed: {error:#}");
                let why = "Server error".to_owned();
                (StatusCode::INTERNAL_SERVER_ERROR, why)
            }
        };
        (status, Some(why), retry_after)
    }
}

impl From<WriteError> for Refusal {
    fn from(error: WriteError) -> Self {
        match error {
            WriteError::Refused(why) => Refusal::Wrong(why),
            WriteError::NoRights => Refusal::Unauthorized,
            WriteError::Forbidden(why) => Refusal::Forbidden(why),
            WriteError::NotFound(why) => Refusal::Missing(why),
            WriteError::Conflict(why) => Refusal::Conflict(why),
            WriteError::Data(error) => error.into(),
            broken @ WriteError::Broken(_) => Refusal::Fault(broken.into()),
        }
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let (status, why, retry_after) = self.parts();
        let mut response = match why {
            None => status.into_response(),
            Some(why) => json(status, Value::String(why).to_string()),
        };
        if let Some(seconds) = retry_after {
            response
                .headers_mut()
                .insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        response
    }
}

/// Returns 200 with a JSON value.
pub fn ok(value: &Value) -> Response {
    json(StatusCode::OK, value.to_string())
}

/// Returns an answer with JSON text.
pub fn json(status: StatusCode, text: impl Into<Body>) -> Response {
    let headers = [
        (header::CONTENT_TYPE, "application/json; charset=utf-8"),
        (header::CACHE_CONTROL, "no-cache"),
    ];
    (status, headers, text.into()).into_response()
}
