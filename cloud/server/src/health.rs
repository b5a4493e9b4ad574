//! `GET /health`: whether this replica can do its work, for whoever spreads connections over several
//! (application/health+json, draft-inadarei-api-health-check).
//!
//! ```json
//! {"status":"pass","checks":{"database":[{"status":"pass"}],"bus":[{"status":"pass"}]}}
//! ```
//!
//! `/health/ready` is the same, by the name that orchestrators know. `/health/live` says no more than that the program
//! answers: whoever restarts programs asks that one, since a restart brings no database back.
//!
//! 503 with `fail` where the database does not answer. Without the bus the status is `warn`, and 200: it is away for
//! every replica, and what needs the database alone goes on. Nobody has to sign in, and nobody is told more.

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::{StatusCode, header};
use serde_json::{Map, Value, json};

use crate::state::ServerState;

/// Answers it.
pub(crate) async fn serve(State(server): State<ServerState>) -> Response {
    let cloud = &server.cloud;
    let database = if server.database_probe.answers(&cloud.database).await {
        "pass"
    } else {
        "fail"
    };
    // Whoever spreads connections is to send none any more.
    let ending = cloud.stop.is_cancelled().then_some("fail");
    let bus = match (cloud.bus.has_others(), cloud.bus.receives_all()) {
        (false, _) => None,
        (true, true) => Some("pass"),
        (true, false) => Some("warn"),
    };
    let registry = match (&cloud.configuration.registry_url, server.garbage.is_late()) {
        (None, _) => None,
        (Some(_), false) => Some("pass"),
        (Some(_), true) => Some("warn"),
    };
    let parts = [
        ("database", Some(database)),
        ("bus", bus),
        ("registry", registry),
        ("ending", ending),
    ];
    let any = |status_name: &str| parts.iter().any(|(_, check)| *check == Some(status_name));
    let status = match (any("fail"), any("warn")) {
        (true, _) => "fail",
        (_, true) => "warn",
        _ => "pass",
    };
    let mut checks = Map::new();
    for (name, check) in parts {
        if let Some(check) = check {
            checks.insert(name.to_owned(), json!([{ "status": check }]));
        }
    }
    let code = match status {
        "fail" => StatusCode::SERVICE_UNAVAILABLE,
        _ => StatusCode::OK,
    };
    answer(code, &json!({ "status": status, "checks": checks }))
}

/// Answers that the program does.
pub(crate) async fn live() -> Response {
    answer(StatusCode::OK, &json!({ "status": "pass" }))
}

fn answer(code: StatusCode, body: &Value) -> Response {
    let headers = [
        (header::CONTENT_TYPE, "application/health+json"),
        (header::CACHE_CONTROL, "no-store"),
    ];
    (code, headers, body.to_string()).into_response()
}
