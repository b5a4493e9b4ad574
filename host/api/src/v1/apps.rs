//! `/v1/apps/:appId`: the endpoints from when a device ran one container (docs/spec/device.md#v1). A device that runs
//! several answers 400.

use std::collections::BTreeMap;

use http::{Method, StatusCode};
use model::{Action, AppUuid, DeviceStatus, ServiceStatus, Verb};
use schemars::JsonSchema;
use serde::Serialize;

use crate::action_body::Forced;
use crate::answer::{self, Failure};
use crate::app::Api;
use crate::body;
use crate::call::Call;
use crate::operation::{Answer, Operation, schema};
use crate::routes::{Handler, Outcome, Route};
use crate::services::{self, APP_NOT_FOUND, PARAMS_MISSING};

/// Stop and start answer the same.
const ACT: Operation = Operation::answering(&[
    Answer::json("the action is complete", schema::<ActedContainer>),
    Answer::text(
        StatusCode::BAD_REQUEST,
        "the app does not exist, or the device runs several containers",
    ),
    Answer::text(StatusCode::NOT_FOUND, "the service is being removed"),
    Answer::LOCKED,
])
.taking(schema::<Forced>);

pub(crate) const ROUTES: &[Route] = &[
    Route {
        method: Method::GET,
        path: "/v1/apps/:appId",
        summary: "the only container of the device",
        operation: Operation::answering(&[
            Answer::json("the container", schema::<App>),
            Answer::text(
                StatusCode::BAD_REQUEST,
                "the app does not exist, or the device runs several containers",
            ),
            Answer::failed(StatusCode::UNAUTHORIZED, "the key is of another app"),
        ]),
        handler: Handler::Later(|api, call| Box::pin(app(api, call))),
    },
    Route {
        method: Method::POST,
        path: "/v1/apps/:appId/stop",
        summary: "stops the only container of the device",
        operation: ACT,
        handler: Handler::Later(|api, call| Box::pin(act(api, call, Verb::Stop))),
    },
    Route {
        method: Method::POST,
        path: "/v1/apps/:appId/start",
        summary: "starts the only container of the device",
        operation: ACT,
        handler: Handler::Later(|api, call| Box::pin(act(api, call, Verb::Start))),
    },
];

/// The only service of the device, if it is the app's.
struct Only<'a> {
    uuid: &'a AppUuid,
    service: &'a ServiceStatus,
    commit: Option<&'a str>,
}

/// Finds the only container, or refuses with these texts.
fn only<'a>(
    status: &'a DeviceStatus,
    id: i64,
    not_found: &'static str,
    several: &'static str,
) -> Result<Only<'a>, Failure> {
    let refused = |text| Failure::Plain(StatusCode::BAD_REQUEST, text);
    let found = services::app_id(Some(id)).and_then(|id| services::current_app(status, id));
    let found = found.ok_or_else(|| refused(not_found))?;
    if services::current_services(status).count() > 1 {
        return Err(refused(several));
    }
    let service = found.services().next().ok_or_else(|| refused(not_found))?;
    Ok(Only {
        uuid: found.uuid,
        service,
        commit: found.app.commit.as_ref().map(model::Commit::as_str),
    })
}

/// The only container of the device.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "OnlyContainer")]
struct App<'a> {
    app_id: i64,
    /// The commit of the container's release.
    #[serde(skip_serializing_if = "Option::is_none")]
    commit: Option<&'a str>,
    container_id: &'a str,
    /// The environment, without keys.
    env: BTreeMap<String, String>,
    /// The reference of its image.
    image_id: &'a str,
    release_id: u64,
}

async fn app(api: Api, call: Call) -> Outcome {
    let refused = |text| Failure::Plain(StatusCode::BAD_REQUEST, text);
    let id = lenient::parse_int(call.segment()).ok_or_else(|| refused("Missing app id"))?;
    if !services::app_id(Some(id)).is_some_and(|id| call.caller.scope.covers(id)) {
        return Err(Failure::Refused(
            StatusCode::UNAUTHORIZED,
            "Application is not available".into(),
        ));
    }
    let status = api.device.status();
    let only = only(
        &status,
        id,
        "App not found",
        "Some v1 endpoints are only allowed on single-container apps",
    )?;
    let Some(container) = &only.service.container else {
        return Err(refused("App not found"));
    };
    let failed = |cause: String| Failure::Internal {
        doing: "read the container's environment",
        cause: cause.into(),
    };
    let mut env = api.device.environment(container).await.map_err(failed)?;
    let branding = &api.settings.branding;
    for secret in branding.secret_variables() {
        env.remove(&secret);
    }
    Ok(answer::json(&App {
        app_id: id,
        commit: only.commit,
        container_id: container.as_str(),
        env,
        image_id: only.service.image.as_str(),
        release_id: only.service.release.0,
    }))
}

/// The container that was stopped or started.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "ActedContainer")]
struct ActedContainer<'a> {
    #[serde(rename = "containerId")]
    container_id: &'a str,
}

async fn act(api: Api, call: Call, verb: fn(model::ServiceName) -> Verb) -> Outcome {
    let refused = |text| Failure::Plain(StatusCode::BAD_REQUEST, text);
    let id = lenient::parse_int(call.segment());
    let scope = call.caller.scope;
    let body: Forced = body::action(call.request).await?;
    let id = id.ok_or_else(|| refused("Invalid app id"))?;
    if !services::app_id(Some(id)).is_some_and(|id| scope.covers(id)) {
        return Err(Failure::Unauthorized);
    }
    let status = api.device.status();
    let only = only(&status, id, APP_NOT_FOUND, PARAMS_MISSING)?;
    let service = services::in_target(only.service)?;
    let (name, before) = (service.name.clone(), service.container.clone());
    let action = Action {
        app: only.uuid.clone(),
        verb: verb(name.clone()),
        force: body.force,
    };
    drop(status);
    let app = action.app.clone();
    api.device.act(action).await.map_err(Failure::of_action)?;
    // The action may have waited for another that made the container anew.
    let status = api.device.status();
    let services = status
        .apps
        .get(&app)
        .into_iter()
        .flat_map(|app| &app.services);
    let mut containers = services
        .filter(|service| service.name == name)
        .filter_map(|service| service.container.as_ref());
    let container = containers.next_back().or(before.as_ref());
    let container = container.ok_or_else(|| refused(APP_NOT_FOUND))?;
    Ok(answer::json(&ActedContainer {
        container_id: container.as_str(),
    }))
}
