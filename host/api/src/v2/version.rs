//! `GET /v2/version`: the API level that clients gate features on (docs/spec/device.md#api-level).

use http::Method;
use schemars::JsonSchema;
use serde::Serialize;

use crate::answer;
use crate::operation::{Answer, Operation, schema};
use crate::routes::{Handler, Route};

pub(crate) const ROUTES: &[Route] = &[Route {
    method: Method::GET,
    path: "/v2/version",
    summary: "the level of this API",
    operation: Operation::answering(&[Answer::json("the level", schema::<Version>)]),
    handler: Handler::Now(|api, _| {
        Ok(answer::json(&Version {
            status: "success",
            version: &api.settings.branding.api_level,
        }))
    }),
}];

/// The level of the API.
#[derive(Serialize, JsonSchema)]
struct Version<'a> {
    status: &'static str,
    /// A semantic version.
    version: &'a str,
}
