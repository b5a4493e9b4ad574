//! `GET /v1/healthy` (docs/spec/device.md#health).

use http::{Method, StatusCode};

use crate::answer;
use crate::app::Api;
use crate::device::Response;
use crate::operation::{Answer, Operation};
use crate::routes::{Handler, Route};

pub(crate) const PATH: &str = "/v1/healthy";

pub(crate) const ROUTES: &[Route] = &[Route {
    method: Method::GET,
    path: PATH,
    summary: "checks whether the supervisor works as it should",
    operation: Operation::answering(&[
        Answer::empty(StatusCode::OK, "the device is healthy"),
        Answer::text(
            StatusCode::INTERNAL_SERVER_ERROR,
            "`Unhealthy`: the log says what is wrong",
        ),
    ])
    .without_key(),
    // Answered before keys are looked at; this line is for the list of routes.
    handler: Handler::Now(|api, _| Ok(health(api))),
}];

/// 200 and empty, or 500 with the text `Unhealthy`; what is wrong goes to the log.
pub(crate) fn health(api: &Api) -> Response {
    let mut problems = api.device.problems();
    problems.extend(api.endpoints.problems());
    if problems.is_empty() {
        return answer::empty(StatusCode::OK);
    }
    if api.access_log.wants_problems() {
        tracing::warn!(?problems, "the device is not healthy");
    }
    answer::text(StatusCode::INTERNAL_SERVER_ERROR, "Unhealthy")
}
