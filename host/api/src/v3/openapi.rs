//! `GET /v3/openapi.json`: the API as it is on this device, plugins included.

use axum::extract::State;
use schemars::{Schema, SchemaGenerator, json_schema};
use serde_json::Value;

use crate::answer::Json;
use crate::app::Api;
use crate::openapi;
use crate::operation::Answer;
use crate::routes::Route;

pub(crate) fn routes() -> Vec<Route> {
    vec![
        Route::get("/v3/openapi.json", describe)
            .summary("the description of this API in OpenAPI 3.1, plugins included")
            .answering([Answer::json("the description", description)]),
    ]
}

/// The document's own schema is its standard's.
fn description(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "object", "required": ["openapi", "info", "paths"] })
}

async fn describe(State(api): State<Api>) -> Json<Value> {
    api.endpoints.listed().await;
    let level = &api.settings.branding.api_level;
    Json(openapi::describe(level, api.endpoints.routes()))
}
