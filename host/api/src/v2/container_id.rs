//! `GET /v2/containerId`: the containers of the services (docs/spec/device.md#v2-others).

use std::collections::BTreeMap;

use axum::extract::{RawQuery, State};
use axum::response::IntoResponse;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};

use crate::answer::{Failure, Json};
use crate::caller::Caller;
use crate::extract::query_parameter;
use crate::message::Response;
use crate::operation::{Answer, schema};
use crate::route::Route;
use crate::state::Api;

pub(crate) fn routes() -> Vec<Route> {
    vec![
        Route::get("/v2/containerId", container_id)
            .summary("the container of one service, or of each")
            .with_query(&[
                ("service", "the service; by default all services"),
                ("serviceName", "the same; it takes precedence"),
            ])
            .answering([
                Answer::json("one container, or all by service", schema::<ContainerIds>),
                Answer::failed(503, "there is no such service"),
            ]),
    ]
}

/// The answer, with or without a requested service.
#[derive(JsonSchema)]
#[schemars(untagged)]
#[expect(dead_code, reason = "says what the two ways to answer are")]
enum ContainerIds {
    One(ContainerId<'static>),
    All(AllContainerIds),
}

/// The container of one service.
#[derive(Serialize, JsonSchema)]
struct ContainerId<'a> {
    status: &'static str,
    #[serde(rename = "containerId")]
    #[schemars(with = "String")]
    container_id: &'a Value,
}

/// The container of each service.
#[derive(Serialize, JsonSchema)]
struct AllContainerIds {
    status: &'static str,
    /// Container ids by service name.
    #[schemars(with = "BTreeMap<String, String>")]
    services: Map<String, Value>,
}

async fn container_id(
    State(api): State<Api>,
    caller: Caller,
    RawQuery(query): RawQuery,
) -> Result<Response, Failure> {
    let status = api.device.status();
    // Two apps may have services with the same name: the last one wins, since this endpoint names
    // no app.
    let mut services = Map::new();
    for app in status.apps.values() {
        if caller.scope.covers(app.id) {
            for service in &app.services {
                if let Some(container) = &service.container {
                    services.insert(service.name.to_string(), container.as_str().into());
                }
            }
        }
    }
    // An empty name counts as the name of no service: a script whose variable is not set should
    // notice.
    let parameter = |name| query_parameter(query.as_deref(), name);
    let Some(name) = parameter("serviceName").or_else(|| parameter("service")) else {
        let all = AllContainerIds {
            status: "success",
            services,
        };
        return Ok(Json(all).into_response());
    };
    let container_id = services
        .get(name.as_ref())
        .ok_or_else(|| Failure::unavailable("Could not find service with that name"))?;
    let one = ContainerId {
        status: "success",
        container_id,
    };
    Ok(Json(one).into_response())
}
