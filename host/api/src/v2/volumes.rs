//! `GET /v2/cleanup-volumes`: removes volumes that nothing uses (docs/spec/device.md#cleanup-volumes). It is a `GET`
//! with a side effect, because clients expect that.

use axum::extract::State;
use schemars::JsonSchema;
use serde::Serialize;

use crate::answer::{Failure, Json};
use crate::operation::{Answer, schema};
use crate::route::Route;
use crate::state::Api;

pub(crate) fn routes() -> Vec<Route> {
    vec![
        Route::get("/v2/cleanup-volumes", clean_up)
            .summary("removes the volumes that no container uses and no target names")
            .answering([
                Answer::json("the volumes have been removed", schema::<CleanedUp>),
                Answer::failed(503, "some could not be removed"),
            ]),
    ]
}

/// The action is complete.
#[derive(Serialize, JsonSchema)]
struct CleanedUp {
    status: &'static str,
}

async fn clean_up(State(api): State<Api>) -> Result<Json<CleanedUp>, Failure> {
    let result = api.device.clean_up_volumes().await;
    result.map_err(Failure::unavailable)?;
    Ok(Json(CleanedUp { status: "success" }))
}
