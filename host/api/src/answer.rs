//! The shapes that answers have. They differ between endpoints for historical reasons
//! (docs/spec/device.md#http-answers): text, empty, JSON, and JSON with `status` and `message` for failures. Each
//! shape is one function here, and [`Failure`] is the one way in which a handler refuses.

use std::error::Error;

use axum::body::Body;
use bytes::Bytes;
use http::header::{ALLOW, CONTENT_TYPE, HeaderValue, RETRY_AFTER};
use http::{Method, StatusCode};
use model::{ActionError, error_chain};
use schemars::JsonSchema;
use serde::Serialize;

use crate::device::Response;

const TEXT: HeaderValue = HeaderValue::from_static("text/plain; charset=utf-8");
const JSON: HeaderValue = HeaderValue::from_static("application/json; charset=utf-8");
/// The media type of Prometheus' text.
pub(crate) const PROMETHEUS: &str = "text/plain; version=0.0.4; charset=utf-8";
const METRICS: HeaderValue = HeaderValue::from_static(PROMETHEUS);
const EVENTS: HeaderValue = HeaderValue::from_static("text/event-stream; charset=utf-8");
const NDJSON: HeaderValue = HeaderValue::from_static("application/x-ndjson; charset=utf-8");

/// When a client may ask again for what is being loaded, in seconds.
const LOADED_AGAIN: u32 = 5;

/// Plain text. The cloud proxy lets only some characters of it through (docs/spec/device.md#http-text): no
/// underscores, braces, parentheses or double quotes.
pub(crate) fn text(status: StatusCode, text: impl Into<Body>) -> Response {
    with_type(status, TEXT, text.into())
}

/// No body and no content type.
pub(crate) fn empty(status: StatusCode) -> Response {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = status;
    response
}

/// 200 with JSON.
pub(crate) fn json(value: &impl Serialize) -> Response {
    json_with(StatusCode::OK, value)
}

/// 200 with JSON that was written before.
pub(crate) fn written_json(json: Bytes) -> Response {
    with_type(StatusCode::OK, JSON, json.into())
}

/// 200 with a JSON object a line, for as long as the body goes on.
pub(crate) fn ndjson(body: Body) -> Response {
    with_type(StatusCode::OK, NDJSON, body)
}

/// 200 with Prometheus' text.
pub(crate) fn metrics(body: Body) -> Response {
    with_type(StatusCode::OK, METRICS, body)
}

/// 200 with server-sent events, for as long as the body goes on.
pub(crate) fn event_stream(body: Body) -> Response {
    with_type(StatusCode::OK, EVENTS, body)
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

/// `{"status":"failed","message":message}`.
pub(crate) fn failed(status: StatusCode, message: &str) -> Response {
    json_with(
        status,
        &FailureBody {
            status: "failed",
            message,
        },
    )
}

/// Why a request was refused or failed. The client receives only what is described here.
#[derive(Debug)]
pub(crate) enum Failure {
    /// 401, text: the key is missing or unknown.
    Unauthorized,
    /// `{"status":"failed"}` with this status and message.
    Refused(StatusCode, String),
    /// Text with this status, as the oldest endpoints answer.
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

    /// 423 if a lock is in the way, else 503; JSON-failed (docs/spec/device.md#locks-errors).
    pub(crate) fn of_action(error: ActionError) -> Self {
        match error {
            ActionError::Locked(why) => Failure::Refused(StatusCode::LOCKED, why),
            ActionError::Failed(why) => Failure::Refused(StatusCode::SERVICE_UNAVAILABLE, why),
        }
    }

    /// The answer that a client gets.
    pub(crate) fn answer(self) -> Response {
        match self {
            Failure::Unauthorized => text(StatusCode::UNAUTHORIZED, "Unauthorized"),
            Failure::Refused(status, message) => failed(status, &message),
            Failure::Plain(status, message) => text(status, message),
            Failure::MethodNotAllowed(methods) => method_not_allowed(&methods),
            Failure::Loading(what) => {
                let mut response = failed(StatusCode::SERVICE_UNAVAILABLE, &what);
                let headers = response.headers_mut();
                headers.insert(RETRY_AFTER, HeaderValue::from(LOADED_AGAIN));
                response
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

/// JSON with this status.
pub(crate) fn json_with(status: StatusCode, value: &impl Serialize) -> Response {
    match serde_json::to_vec(value) {
        Ok(json) => with_type(status, JSON, json.into()),
        // Answers are maps with string keys; were one not, the client should still get an answer.
        Err(error) => {
            tracing::error!(%error, "failed to write an answer as JSON");
            empty(StatusCode::INTERNAL_SERVER_ERROR)
        }
    }
}

fn with_type(status: StatusCode, content_type: HeaderValue, body: Body) -> Response {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, content_type);
    response
}
