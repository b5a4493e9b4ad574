//! The shapes that answers have. They differ between endpoints for historical reasons
//! (docs/spec/device.md#http-answers): text and empty ones, which axum makes of strings and of statuses, [`Json`], and
//! JSON with `status` and `message` for failures. [`Failure`] is the one way in which a handler refuses.

use std::error::Error;

use axum::response::IntoResponse;
use bytes::Bytes;
use http::header::{ALLOW, CONTENT_TYPE, HeaderValue, RETRY_AFTER};
use http::{Method, StatusCode};
use model::{ActionError, error_chain};
use schemars::JsonSchema;
use serde::Serialize;

use crate::device::Response;

const JSON: HeaderValue = HeaderValue::from_static("application/json; charset=utf-8");

/// When a client may ask again for what is being loaded, in seconds.
const LOADED_AGAIN: u32 = 5;

/// JSON. axum's own names no charset.
pub(crate) struct Json<T>(pub(crate) T);

impl<T: Serialize> IntoResponse for Json<T> {
    fn into_response(self) -> Response {
        match serde_json::to_vec(&self.0) {
            Ok(json) => WrittenJson(json.into()).into_response(),
            // Answers are maps with string keys; were one not, the client should still get an answer.
            Err(error) => {
                tracing::error!(%error, "failed to write an answer as JSON");
                StatusCode::INTERNAL_SERVER_ERROR.into_response()
            }
        }
    }
}

/// JSON that was written before.
pub(crate) struct WrittenJson(pub(crate) Bytes);

impl IntoResponse for WrittenJson {
    fn into_response(self) -> Response {
        ([(CONTENT_TYPE, JSON)], self.0).into_response()
    }
}

/// The body of most failures of the API.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Failed")]
pub(crate) struct FailureBody<'a> {
    /// Always `failed`.
    status: &'static str,
    /// What failed, and what to do.
    message: &'a str,
}

/// Why a request was refused or failed. The client receives only what is described here.
#[derive(Debug)]
pub(crate) enum Failure {
    /// 401, text: the key is missing or unknown.
    Unauthorized,
    /// `{"status":"failed"}` with this status and message.
    Refused(StatusCode, String),
    /// Text with this status, as the oldest endpoints answer. The cloud proxy lets only some characters of it through
    /// (docs/spec/device.md#http-text): no underscores, braces, parentheses or double quotes.
    Plain(StatusCode, &'static str),
    /// 405: the path is known, with these methods.
    MethodNotAllowed(Vec<Method>),
    /// 503 JSON-failed with `Retry-After`: what is being loaded.
    Loading(String),
    /// 503 JSON-failed (docs/spec/device.md#http-errors): the client gets `doing`, the log the cause.
    Internal {
        doing: &'static str,
        cause: Box<dyn Error + Send + Sync>,
    },
}

impl Failure {
    /// 400 JSON-failed.
    pub(crate) fn invalid(message: impl Into<String>) -> Self {
        Failure::Refused(StatusCode::BAD_REQUEST, message.into())
    }

    /// 401 JSON-failed: the key is known and does not cover the app.
    pub(crate) fn out_of_scope() -> Self {
        Failure::Refused(StatusCode::UNAUTHORIZED, "Unauthorized".into())
    }

    /// 503 JSON-failed.
    pub(crate) fn unavailable(message: impl Into<String>) -> Self {
        Failure::Refused(StatusCode::SERVICE_UNAVAILABLE, message.into())
    }
}

/// 423 if a lock is in the way, else 503; JSON-failed (docs/spec/device.md#locks-errors).
impl From<ActionError> for Failure {
    fn from(error: ActionError) -> Self {
        match error {
            ActionError::Locked(why) => Failure::Refused(StatusCode::LOCKED, why),
            ActionError::Failed(why) => Failure::unavailable(why),
        }
    }
}

/// The answer that a client gets.
impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        match self {
            Failure::Unauthorized => (StatusCode::UNAUTHORIZED, "Unauthorized").into_response(),
            Failure::Refused(status, message) => failed(status, &message),
            Failure::Plain(status, message) => (status, message).into_response(),
            Failure::MethodNotAllowed(methods) => method_not_allowed(&methods),
            Failure::Loading(what) => {
                let retry = [(RETRY_AFTER, HeaderValue::from(LOADED_AGAIN))];
                (retry, failed(StatusCode::SERVICE_UNAVAILABLE, &what)).into_response()
            }
            Failure::Internal { doing, cause } => {
                tracing::error!(cause = error_chain(cause.as_ref()), "failed to {doing}");
                failed(
                    StatusCode::SERVICE_UNAVAILABLE,
                    &format!("failed to {doing}"),
                )
            }
        }
    }
}

/// `{"status":"failed","message":message}`.
fn failed(status: StatusCode, message: &str) -> Response {
    let body = FailureBody {
        status: "failed",
        message,
    };
    (status, Json(body)).into_response()
}

fn method_not_allowed(methods: &[Method]) -> Response {
    let mut allowed: Vec<&str> = methods.iter().map(Method::as_str).collect();
    if allowed.contains(&"GET") {
        allowed.push("HEAD");
    }
    allowed.sort_unstable();
    allowed.dedup();
    let allowed = allowed.join(", ");
    let mut response = failed(
        StatusCode::METHOD_NOT_ALLOWED,
        &format!("method not allowed here, use one of: {allowed}"),
    );
    if let Ok(value) = HeaderValue::from_str(&allowed) {
        response.headers_mut().insert(ALLOW, value);
    }
    response
}
