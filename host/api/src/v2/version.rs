//! `GET /v2/version`: the API level that determines which features clients use
//! (docs/spec/device.md#api-level).

use axum::extract::State;
use axum::response::IntoResponse;
use schemars::JsonSchema;
use serde::Serialize;

use crate::answer::Json;
use crate::message::Response;
use crate::operation::{Answer, schema};
use crate::route::Route;
use crate::state::Api;

pub(crate) fn routes() -> Vec<Route> {
    vec![
        Route::get("/v2/version", version)
            .summary("the level of this API")
            .answering([Answer::json("the level", schema::<Version>)]),
    ]
}

/// The level of the API.
#[derive(Serialize, JsonSchema)]
struct Version<'a> {
    status: &'static str,
    /// A semantic version.
    version: &'a str,
}

async fn version(State(api): State<Api>) -> Response {
    let version = Version {
        status: "success",
        version: &api.settings.branding.api_level,
    };
    Json(version).into_response()
}
