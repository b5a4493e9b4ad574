//! Answers in the form of the data API: errors are JSON strings (docs/spec/cloud.md#odata-answers).

use axum::body::Body;
use axum::response::{IntoResponse, Response};
use data::DataError;
use data::query::QueryError;
use data::write::WriteError;
use http::{HeaderValue, StatusCode, header};

use crate::unreadable;

/// Why a request is not answered as it wished.
#[derive(Debug)]
pub enum Refusal {
    /// 400: it is wrong, or a rule forbids it.
    Wrong(String),
    /// 401, without a word: no rights, or no credential that is one.
    Unauthorized,
    /// 401 with a word for clients that look at it.
    UnauthorizedSaying(&'static str),
    /// 403: not with this row.
    Forbidden(String),
    /// 404.
    Missing(String),
    /// 408: its body did not come.
    TooSlow,
    /// 409: another row is in the way.
    Conflict(String),
    /// 413.
    TooLarge(usize),
    /// 415.
    ContentType(&'static str),
    /// 429, to be asked again after so many seconds.
    TooMany(u64),
    /// 503, likewise.
    Unavailable(String),
    /// 502: a device gave no answer.
    Unreached(String),
    /// 500; what happened is in the log alone.
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
            // Of a change that was under way when it broke, only looking again tells.
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
                // Those who ask are many, such as the devices of a fleet, and ask again.
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
    /// No connection to the database in time.
    pub fn database_away() -> Self {
        Refusal::Unavailable(
            "the database is busy or unavailable, and nothing was changed; try again".to_owned(),
        )
    }

    /// What the answer says, as text.
    pub fn parts(self) -> (StatusCode, Option<String>, Option<u64>) {
        match self {
            Refusal::Wrong(why) => (StatusCode::BAD_REQUEST, Some(why), None),
            Refusal::Unauthorized => (StatusCode::UNAUTHORIZED, None, None),
            Refusal::UnauthorizedSaying(why) => {
                (StatusCode::UNAUTHORIZED, Some(why.to_owned()), None)
            }
            Refusal::Forbidden(why) => (StatusCode::FORBIDDEN, Some(why), None),
            Refusal::Missing(why) => (StatusCode::NOT_FOUND, Some(why), None),
            Refusal::TooSlow => (
                StatusCode::REQUEST_TIMEOUT,
                Some("The body did not come in time.".to_owned()),
                None,
            ),
            Refusal::Conflict(why) => (StatusCode::CONFLICT, Some(why), None),
            Refusal::TooLarge(most) => (
                StatusCode::PAYLOAD_TOO_LARGE,
                Some(format!("The body has more than {most} bytes.")),
                None,
            ),
            Refusal::ContentType(wanted) => (
                StatusCode::UNSUPPORTED_MEDIA_TYPE,
                Some(format!("The body must be {wanted}.")),
                None,
            ),
            Refusal::TooMany(after) => (
                StatusCode::TOO_MANY_REQUESTS,
                Some("Too Many Requests".to_owned()),
                Some(after),
            ),
            Refusal::Unavailable(why) => (StatusCode::SERVICE_UNAVAILABLE, Some(why), Some(1)),
            Refusal::Unreached(why) => (StatusCode::BAD_GATEWAY, Some(why), None),
            Refusal::Fault(error) => {
                tracing::error!("a request failed: {error:#}");
                (
                    StatusCode::INTERNAL_SERVER_ERROR,
                    Some("Server error".to_owned()),
                    None,
                )
            }
        }
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
            Some(why) => json(status, serde_json::Value::String(why).to_string()),
        };
        if let Some(seconds) = retry_after {
            response
                .headers_mut()
                .insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        response
    }
}

/// JSON text as an answer.
pub fn json(status: StatusCode, text: impl Into<Body>) -> Response {
    let headers = [
        (header::CONTENT_TYPE, "application/json; charset=utf-8"),
        (header::CACHE_CONTROL, "no-cache"),
    ];
    (status, headers, text.into()).into_response()
}
