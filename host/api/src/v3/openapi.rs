//! `GET /v3/openapi.json`: the API as it is on this device, plugins included.

use http::Method;
use schemars::{Schema, SchemaGenerator, json_schema};

use crate::answer;
use crate::app::Api;
use crate::openapi;
use crate::operation::{Answer, Operation};
use crate::routes::{Handler, Outcome, Route};

pub(crate) const ROUTES: &[Route] = &[Route {
    method: Method::GET,
    path: "/v3/openapi.json",
    summary: "the description of this API in OpenAPI 3.1, plugins included",
    operation: Operation::answering(&[Answer::json("the description", description)]),
    handler: Handler::Later(|api, _| Box::pin(describe(api))),
}];

/// The document's own schema is its standard's.
fn description(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "object", "required": ["openapi", "info", "paths"] })
}

async fn describe(api: Api) -> Outcome {
    api.endpoints.listed().await;
    let level = &api.settings.branding.api_level;
    Ok(answer::json(&openapi::describe(
        level,
        api.endpoints.routes(),
    )))
}
