//! The forms of answers. They differ between endpoints for historical reasons (docs/spec/device.md#http-answers): text
//! and empty answers, which axum creates from strings and statuses, [`Json`], and JSON with `status` and `message` for
//! failures. Handlers refuse only with [`Failure`].

use std::error::Error;

use axum::response::IntoResponse;
use bytes::Bytes;
use http::header::{ALLOW, CONTENT_TYPE, HeaderValue, RETRY_AFTER};
use http::{Method, StatusCode};
use model::{ActionError, error_chain};
use plugin_manifest::allowed_methods;
use request_site::ForeignSite;
use schemars::JsonSchema;
use serde::Serialize;

use crate::message::Response;

const JSON: HeaderValue = HeaderValue::from_static("application/json; charset=utf-8");

/// When a client may retry a request for something that is being loaded, in seconds.
const LOADED_AGAIN: u32 = 5;

/// A JSON answer. Unlike this type, axum's own does not name the charset.
pub(crate) struct Json<T>(pub(crate) T);

impl<T: Serialize> IntoResponse for Json<T> {
    fn into_response(self) -> Response {
        match serde_json::to_vec(&self.0) {
            Ok(json) => WrittenJson(json.into()).into_response(),
            // Answers are maps with string keys; if one is not, the client should still get an answer.
            Err(error) => {
                tracing::error!(%error, "failed to write an answer as JSON");
                StatusCode::INTERNAL_SERVER_ERROR.into_response()
            }
        }
    }
}

/// JSON that is already serialized.
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
    /// 503 JSON-failed with `Retry-After`: this is being loaded.
    Loading(String),
    /// 503 JSON-failed (docs/spec/device.md#http-errors): `doing` is sent to the client, the cause is logged.
    Internal {
        doing: &'static str,
        cause: Box<dyn Error + Send + Sync>,
    },
}

impl Failure {
    /// Returns a 400 JSON-failed.
    pub(crate) fn invalid(message: impl Into<String>) -> Self {
        Failure::Refused(StatusCode::BAD_REQUEST, message.into())
    }

    /// Returns a 401 JSON-failed: the key is known but does not cover the app.
    pub(crate) fn out_of_scope() -> Self {
        Failure::Refused(StatusCode::UNAUTHORIZED, "Unauthorized".into())
    }

    /// Returns a 503 JSON-failed.
    pub(crate) fn unavailable(message: impl Into<String>) -> Self {
        Failure::Refused(StatusCode::SERVICE_UNAVAILABLE, message.into())
    }
}

/// 423 if a lock prevents the action, else 503; JSON-failed (docs/spec/device.md#locks-errors).
impl From<ActionError> for Failure {
    fn from(error: ActionError) -> Self {
        match error {
            ActionError::Locked(why) => Failure::Refused(StatusCode::LOCKED, why),
            ActionError::Failed(why) => Failure::unavailable(why),
        }
    }
}

impl From<ForeignSite> for Failure {
    fn from(error: ForeignSite) -> Failure {
        let message = match &error {
            ForeignSite::Name(_) => format!(
                "{error}: use an address, or add the name to `host_names` in its configuration"
            ),
            ForeignSite::Origin | ForeignSite::Contradiction => error.to_string(),
        };
        Failure::Refused(StatusCode::FORBIDDEN, message)
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

/// Returns `{"status":"failed","message":message}` with this status.
fn failed(status: StatusCode, message: &str) -> Response {
    let body = FailureBody {
        status: "failed",
        message,
    };
    (status, Json(body)).into_response()
}

fn method_not_allowed(methods: &[Method]) -> Response {
    let allowed = allowed_methods(methods);
    let mut response = failed(
        StatusCode::METHOD_NOT_ALLOWED,
        &format!("method not allowed here, use one of: {allowed}"),
    );
    if let Ok(value) = HeaderValue::from_str(&allowed) {
        response.headers_mut().insert(ALLOW, value);
    }
    response
}
