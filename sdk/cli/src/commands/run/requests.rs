//! Requests to the running plugin.

use std::sync::Arc;
use std::time::Instant;

use axum::body::Body;
use axum::response::{IntoResponse as _, Response};
use http::{Request, StatusCode};
use plugin_test_host::RunningHost;
use serde_json::json;
use tokio::sync::RwLock;

use crate::output::note_line;

/// What is currently served.
pub(crate) enum ServedPlugin {
    /// Nothing has been built yet.
    Nothing,
    /// The running plugin.
    Plugin(RunningHost),
    /// A version that a device would refuse, and the reason.
    Refused(String),
}

/// Answers one request, and shows it to the author.
pub(crate) async fn answer(served: Arc<RwLock<ServedPlugin>>, request: Request<Body>) -> Response {
    let started = Instant::now();
    let what = format!("{} {}", request.method(), request.uri().path());
    let served = served.read().await;
    let response = match &*served {
        ServedPlugin::Plugin(host) => host.call(request).await.map(Body::new),
        ServedPlugin::Refused(reason) => unavailable(reason),
        ServedPlugin::Nothing => unavailable("the plugin is being built"),
    };
    let milliseconds = started.elapsed().as_secs_f64() * 1000.0;
    let status = response.status();
    let line = format!("{what}  {}  {milliseconds:.1} ms", status.as_u16());
    note_line(line);
    if status == StatusCode::NOT_FOUND && response.headers().is_empty() {
        return message(
            status,
            "this plugin has no such route, and the routes of the supervisor are not served here",
        );
    }
    response
}

fn unavailable(reason: &str) -> Response {
    message(StatusCode::SERVICE_UNAVAILABLE, reason)
}

fn message(status: StatusCode, message: &str) -> Response {
    let body = json!({ "status": "failed", "message": message });
    (status, axum::Json(body)).into_response()
}
