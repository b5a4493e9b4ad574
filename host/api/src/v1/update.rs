//! `POST /v1/update`: checks for a new target now (docs/spec/device.md#v1-update).

use axum::extract::State;
use axum::response::IntoResponse;
use http::StatusCode;

use crate::action_body::Update;
use crate::body::Fields;
use crate::message::Response;
use crate::operation::Answer;
use crate::route::Route;
use crate::state::Api;

pub(crate) fn routes() -> Vec<Route> {
    vec![
        Route::post("/v1/update", update)
            .summary("checks for a new target and applies it")
            .taking::<Update>()
            .answering([
                Answer::empty(204, "the supervisor checks for a new target now"),
                Answer::text(
                    202,
                    "`Accepted`: instant updates are disabled, and `force` is not given",
                ),
            ]),
    ]
}

/// Answers before anything has happened: the result shows in the state.
async fn update(State(api): State<Api>, Fields(body): Fields<Update>) -> Response {
    if api.device.update(body.force, body.cancel) {
        StatusCode::NO_CONTENT.into_response()
    } else {
        (StatusCode::ACCEPTED, "Accepted").into_response()
    }
}
