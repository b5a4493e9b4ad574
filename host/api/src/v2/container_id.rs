//! `GET /v2/containerId`: which container is which service's (docs/spec/device.md#v2-others).

use std::collections::BTreeMap;

use http::{Method, StatusCode};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};

use crate::answer::{self, Failure};
use crate::app::Api;
use crate::call::Call;
use crate::operation::{Answer, Operation, Parameter, schema};
use crate::routes::{Handler, Outcome, Route};

pub(crate) const ROUTES: &[Route] = &[Route {
    method: Method::GET,
    path: "/v2/containerId",
    summary: "the container of one service, or of each",
    operation: Operation::answering(&[
        Answer::json("one container, or all by service", schema::<OneOrAll>),
        Answer::failed(StatusCode::SERVICE_UNAVAILABLE, "there is no such service"),
    ])
    .asked_with(&[
        Parameter {
            name: "service",
            about: "the service; by default all services",
        },
        Parameter {
            name: "serviceName",
            about: "the same; it takes precedence",
        },
    ]),
    handler: Handler::Now(container_id),
}];

/// The answer, with or without a requested service.
#[derive(JsonSchema)]
#[schemars(untagged, rename = "ContainerIds")]
#[expect(dead_code, reason = "says what the two ways to answer are")]
enum OneOrAll {
    One(One<'static>),
    All(All),
}

/// The container of one service.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "ContainerId")]
struct One<'a> {
    status: &'static str,
    #[serde(rename = "containerId")]
    #[schemars(with = "String")]
    container_id: &'a Value,
}

/// The container of each service.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "AllContainerIds")]
struct All {
    status: &'static str,
    /// Container ids by service name.
    #[schemars(with = "BTreeMap<String, String>")]
    services: Map<String, Value>,
}

fn container_id(api: &Api, call: &Call) -> Outcome {
    let status = api.device.status();
    // Two apps may have services of one name: the last one wins, as this endpoint names no app.
    let mut services = Map::new();
    for app in status.apps.values() {
        if call.caller.scope.covers(app.id) {
            for service in &app.services {
                if let Some(container) = &service.container {
                    services.insert(service.name.to_string(), container.as_str().into());
                }
            }
        }
    }
    // An empty name is a name that no service has: a script whose variable is not set is to notice.
    let wanted = call.query("serviceName").or_else(|| call.query("service"));
    match wanted {
        None => Ok(answer::json(&All {
            status: "success",
            services,
        })),
        Some(name) => match services.get(name.as_ref()) {
            Some(container_id) => Ok(answer::json(&One {
                status: "success",
                container_id,
            })),
            None => Err(Failure::Refused(
                StatusCode::SERVICE_UNAVAILABLE,
                "Could not find service with that name".into(),
            )),
        },
    }
}
