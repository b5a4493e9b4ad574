//! `GET /v3/openapi.json`: the API of this device, including its plugins.

use std::hash::{BuildHasher, RandomState};

use axum::extract::State;
use schemars::{Schema, SchemaGenerator, json_schema};

use crate::answer::WrittenJson;
use crate::cached_json::CachedJson;
use crate::openapi;
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

/// The description, serialized once for each set of plugins. The set is identified by its hash: the plugins' own
/// descriptions are large, and need not stay in memory.
#[derive(Default)]
pub(crate) struct Description {
    json: CachedJson<u64>,
    hasher: RandomState,
}

/// Returns a minimal schema: the full schema of such a document is defined by its standard.
fn description(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "object", "required": ["openapi", "info", "paths"] })
}

async fn describe(State(api): State<Api>) -> WrittenJson {
    api.endpoints.listed().await;
    let plugins = api.endpoints.routes();
    let version = api.description.hasher.hash_one(&plugins);
    WrittenJson(api.description.json.of(version, |_| {
        let level = &api.settings.branding.api_level;
        openapi::describe(level, plugins).to_string().into()
    }))
}
