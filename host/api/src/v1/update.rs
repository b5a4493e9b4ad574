//! `POST /v1/update`: looks for a new target now (docs/spec/device.md#v1-update).

use http::{Method, StatusCode};

use crate::answer;
use crate::app::Api;
use crate::body;
use crate::call::Call;
use crate::operation::{Answer, Field, Kind, Operation};
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
    .taking(&[
        Field::FORCE,
        Field::optional(
            "cancel",
            Kind::Flag,
            "whether to cancel the update in progress",
        ),
    ]),
    handler: Handler::Later(|api, call| Box::pin(update(api, call))),
}];

/// Answers before anything has happened: what comes of it shows in the state.
async fn update(api: Api, call: Call) -> Outcome {
    let body = body::object(call.request).await?;
    let flag = |name| body.get(name).is_some_and(model::truthy);
    if api.device.update(flag("force"), flag("cancel")) {
        Ok(answer::empty(StatusCode::NO_CONTENT))
    } else {
        Ok(answer::text(StatusCode::ACCEPTED, "Accepted"))
    }
}
