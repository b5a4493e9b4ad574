//! `/v3/plugins`: the loaded plugins, their rights and their state; the last lines of each plugin; and plugins that
//! developers install.

mod install;

use axum::extract::{RawQuery, State};
use device_types::{Confinement, PluginLog, PluginReport};
use http::StatusCode;
use schemars::JsonSchema;
use serde::Serialize;

use crate::answer::{Failure, Json};
use crate::caller::{Caller, KeyScope};
use crate::extract::{Path, query_parameter};
use crate::operation::{Answer, schema};
use crate::route::Route;
use crate::state::Api;

pub(crate) fn routes() -> Vec<Route> {
    let mut routes = vec![
        Route::get("/v3/plugins", plugins)
            .summary(
                "the plugins with their routes, grants, state and calls, and the restrictions on foreign code",
            )
            .answering([Answer::json("the plugins", schema::<Plugins>)]),
        Route::get("/v3/plugins/:name/log", log)
            .summary("the last lines that a plugin has written to the log")
            .with_query(&[(
                "after",
                "the number of the last line that is known already; by default 0",
            )])
            .answering([
                Answer::json("the lines", schema::<LogAnswer>),
                Answer::failed(400, "`after` is not a number"),
                Answer::failed(401, "the key is of a service"),
                Answer::failed(404, "the device has no such plugin"),
            ]),
    ];
    routes.extend(install::routes());
    routes
}

/// The plugins.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Plugins {
    status: &'static str,
    /// The supervisor's own version; `/v2/version` gives the level of the API.
    version: &'static str,
    /// True in developer mode, in which files need not be pinned to get what the policy gives to the names that they claim;
    /// otherwise left out.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    #[schemars(default)]
    allow_unpinned: bool,
    /// What is wrong with the policy, and what is in force instead; absent if the policy is valid.
    #[serde(skip_serializing_if = "Option::is_none")]
    policy_error: Option<String>,
    /// The restrictions on the processes that run foreign code.
    confinement: Confinement,
    /// The plugins, one object each.
    plugins: Vec<PluginReport>,
}

/// The last lines of a plugin.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "LogOfPlugin")]
struct LogAnswer {
    status: &'static str,
    #[serde(flatten)]
    log: PluginLog,
}

async fn plugins(State(api): State<Api>) -> Json<Plugins> {
    api.endpoints.wait_until_listed().await;
    Json(Plugins {
        status: "success",
        version: env!("CARGO_PKG_VERSION"),
        allow_unpinned: api.endpoints.allow_unpinned(),
        policy_error: api.endpoints.policy_error(),
        confinement: api.device.confinement().await,
        plugins: api.endpoints.report(),
    })
}

/// Shows a plugin's log. It concerns the whole device and requests of all its callers: a service's key cannot read it.
async fn log(
    State(api): State<Api>,
    caller: Caller,
    Path([name]): Path<1>,
    RawQuery(query): RawQuery,
) -> Result<Json<LogAnswer>, Failure> {
    if caller.scope != KeyScope::All {
        return Err(Failure::out_of_scope());
    }
    let after = match query_parameter(query.as_deref(), "after") {
        Some(text) => text.parse().map_err(|_| {
            Failure::invalid("`after` is not a number: give the number of a line, or leave it out")
        })?,
        None => 0,
    };
    api.endpoints.wait_until_listed().await;
    let log = api.endpoints.log(&name, after).ok_or_else(no_such_plugin)?;
    Ok(Json(LogAnswer {
        status: "success",
        log,
    }))
}

fn no_such_plugin() -> Failure {
    let message = "the device has no plugin of that name: GET /v3/plugins lists its plugins";
    Failure::Refused(StatusCode::NOT_FOUND, message.into())
}
