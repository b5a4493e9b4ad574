//! `GET /v1/healthy` (docs/spec/device.md#health).

use axum::extract::State;
use http::StatusCode;

use crate::answer::Failure;
use crate::operation::Answer;
use crate::route::Route;
use crate::state::Api;

pub(crate) fn routes() -> Vec<Route> {
    vec![
        Route::get("/v1/healthy", health)
            .summary("checks whether the supervisor works as it should")
            .without_key()
            .answering([
                Answer::empty(200, "the device is healthy"),
                Answer::text(500, "`Unhealthy`: the log says what is wrong"),
            ]),
    ]
}

/// Returns 200 and empty, or 500 with the text `Unhealthy`; the problems are logged.
async fn health(State(api): State<Api>) -> Result<(), Failure> {
    let mut problems = api.device.problems();
    problems.extend(api.endpoints.problems());
    if problems.is_empty() {
        return Ok(());
    }
    if api.access_log.wants_problems() {
        tracing::warn!(?problems, "the device is not healthy");
    }
    Err(Failure::Plain(
        StatusCode::INTERNAL_SERVER_ERROR,
        "Unhealthy",
    ))
}
