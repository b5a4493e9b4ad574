//! `GET /v2/version`: the API level that clients gate features on (device behaviour, Decisions).

use http::Method;
use serde::Serialize;

use crate::answer;
use crate::routes::{Handler, Route};

pub(crate) const ROUTES: &[Route] = &[Route {
    method: Method::GET,
    path: "/v2/version",
    summary: "the level of this API",
    handler: Handler::Now(|api, _| {
        Ok(answer::json(&Version {
            status: "success",
            version: &api.settings.branding.api_level,
        }))
    }),
}];

#[derive(Serialize)]
struct Version<'a> {
    status: &'static str,
    version: &'a str,
}
