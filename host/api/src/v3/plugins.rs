//! `GET /v3/plugins`: what is loaded, what it may do, how it fares.

use axum::extract::State;
use device_types::{Confinement, PluginReport};
use schemars::JsonSchema;
use serde::Serialize;

use crate::answer::Json;
use crate::app::Api;
use crate::operation::{Answer, schema};
use crate::routes::Route;

pub(crate) fn routes() -> Vec<Route> {
    vec![
        Route::get("/v3/plugins", plugins)
            .summary(
                "the plugins with their routes, grants, state and calls, and the walls around foreign code",
            )
            .answering([Answer::json("the plugins", schema::<Plugins>)]),
    ]
}

/// The plugins.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Plugins {
    status: &'static str,
    /// The supervisor's own version; `/v2/version` gives the level of the API.
    version: &'static str,
    /// In developer mode, where files need not be pinned to get what the policy gives to the names that they
    /// claim: true. Else it is left out.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    #[schemars(default)]
    allow_unpinned: bool,
    /// What is wrong with the policy, and what is in force instead; absent if the policy is valid.
    #[serde(skip_serializing_if = "Option::is_none")]
    policy_error: Option<String>,
    /// The walls around the processes that run foreign code.
    confinement: Confinement,
    /// The plugins, one object each.
    plugins: Vec<PluginReport>,
}

async fn plugins(State(api): State<Api>) -> Json<Plugins> {
    api.endpoints.listed().await;
    Json(Plugins {
        status: "success",
        version: env!("CARGO_PKG_VERSION"),
        allow_unpinned: api.endpoints.allow_unpinned(),
        policy_error: api.endpoints.policy_error(),
        confinement: api.device.confinement().await,
        plugins: api.endpoints.report(),
    })
}
