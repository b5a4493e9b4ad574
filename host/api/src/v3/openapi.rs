//! `GET /v3/openapi.json`: the API of this device, including its plugins.

use axum::extract::State;
use schemars::{Schema, SchemaGenerator, json_schema};

use crate::answer::WrittenJson;
use crate::operation::Answer;
use crate::route::Route;
use crate::state::Api;

pub(crate) fn routes() -> Vec<Route> {
    vec![
        Route::get("/v3/openapi.json", describe)
            .summary("the description of this API in OpenAPI 3.1, plugins included")
            .answering([Answer::json("the description", description)]),
    ]
}

/// Returns a minimal schema: the full schema of such a document is defined by its standard.
fn description(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "object", "required": ["openapi", "info", "paths"] })
}

async fn describe(State(api): State<Api>) -> WrittenJson {
    api.endpoints.wait_until_listed().await;
    let level = &api.settings.branding.api_level;
    WrittenJson(api.description.document(level, api.endpoints.routes()))
}
