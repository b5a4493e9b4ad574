//! Answers of `run` itself to requests that do not reach the plugin.

use axum::response::{IntoResponse as _, Response};
use http::StatusCode;
use serde_json::json;

/// Returns a failure in the form of the supervisor's own.
pub(super) fn refusal(status: StatusCode, message: &str) -> Response {
    let body = json!({ "status": "failed", "message": message });
    (status, axum::Json(body)).into_response()
}
