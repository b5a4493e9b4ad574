//! `GET /health`: whether this replica can do its work, for load balancers (application/health+json,
//! draft-inadarei-api-health-check).
//!
//! ```json
//! {"status":"pass","checks":{"database":[{"status":"pass"}],"bus":[{"status":"pass"}]}}
//! ```
//!
//! `/health/ready` is the same, under the name that orchestrators use. `/health/live` only reports that the program
//! answers: it is for supervisors that restart programs, since a restart does not bring a database back.
//!
//! 503 with `fail` if the database does not answer. Without the bus, the status is `warn`, with 200: every replica
//! lacks it, and everything that needs only the database continues. No credential is required, and no caller receives
//! more information.

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::{StatusCode, header};
use serde_json::{Map, Value, json};

use crate::state::ServerState;

/// Answers with the state of this replica.
pub(crate) async fn serve(State(server): State<ServerState>) -> Response {
    let cloud = &server.cloud;
    let database = if server.database_probe.answers(&cloud.database).await {
        "pass"
    } else {
        "fail"
    };
    // Load balancers should send no further connections.
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

/// Answers that the program is running.
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
