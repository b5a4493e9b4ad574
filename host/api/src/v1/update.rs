//! `POST /v1/update`: looks for a new target now (docs/spec/device.md#v1-update).

use http::{Method, StatusCode};

use crate::action_body::Update;
use crate::answer;
use crate::app::Api;
use crate::body;
use crate::call::Call;
use crate::operation::{Answer, Operation, schema};
use crate::routes::{Handler, Outcome, Route};

pub(crate) const ROUTES: &[Route] = &[Route {
    method: Method::POST,
    path: "/v1/update",
    summary: "checks for a new target and applies it",
    operation: Operation::answering(&[
        Answer::empty(
            StatusCode::NO_CONTENT,
            "the supervisor checks for a new target now",
        ),
        Answer::text(
            StatusCode::ACCEPTED,
            "`Accepted`: instant updates are disabled, and `force` is not given",
        ),
    ])
    .taking(schema::<Update>),
    handler: Handler::Later(|api, call| Box::pin(update(api, call))),
}];

/// Answers before anything has happened: what comes of it shows in the state.
async fn update(api: Api, call: Call) -> Outcome {
    let Update { force, cancel } = body::action(call.request).await?;
    if api.device.update(force, cancel) {
        Ok(answer::empty(StatusCode::NO_CONTENT))
    } else {
        Ok(answer::text(StatusCode::ACCEPTED, "Accepted"))
    }
}
