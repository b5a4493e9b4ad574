//! `/v1/apps/:appId`: the endpoints from the time when a device ran one container (docs/spec/device.md#v1). A device
//! that runs several answers 400.

use std::collections::BTreeMap;

use axum::extract::State;
use axum::response::IntoResponse;
use http::StatusCode;
use model::{Action, AppUuid, DeviceStatus, ServiceName, ServiceStatus, Verb};
use schemars::JsonSchema;
use serde::Serialize;

use crate::action_body::ForceFlag;
use crate::answer::{Failure, Json};
use crate::body::Fields;
use crate::caller::Caller;
use crate::extract::Path;
use crate::message::Response;
use crate::operation::{Answer, schema};
use crate::route::Route;
use crate::services::{self, APP_NOT_FOUND, PARAMS_MISSING};
use crate::state::Api;

const NOT_THE_ONLY: Answer = Answer::text(
    400,
    "the app does not exist, or the device runs several containers",
);

pub(crate) fn routes() -> Vec<Route> {
    let action = |path, verb: fn(ServiceName) -> Verb| {
        Route::post(path, move |api, caller, path, body| {
            act(api, caller, path, body, verb)
        })
        .taking::<ForceFlag>()
        .answering([
            Answer::json("the action is complete", schema::<ActedContainer>),
            NOT_THE_ONLY,
            Answer::text(404, "the service is being removed"),
            Answer::LOCKED,
        ])
    };
    vec![
        Route::get("/v1/apps/:appId", app)
            .summary("the only container of the device")
            .answering([
                Answer::json("the container", schema::<OnlyContainer>),
                NOT_THE_ONLY,
                Answer::OTHER_APP,
            ]),
        action("/v1/apps/:appId/stop", Verb::Stop)
            .summary("stops the only container of the device"),
        action("/v1/apps/:appId/start", Verb::Start)
            .summary("starts the only container of the device"),
    ]
}

/// The only service of the device, if it belongs to the app.
struct OnlyService<'a> {
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
) -> Result<OnlyService<'a>, Failure> {
    let current = services::current_app(status, id).ok_or_else(|| refused(not_found))?;
    if services::current_services(status).count() > 1 {
        return Err(refused(several));
    }
    let service = current.services().next();
    Ok(OnlyService {
        uuid: current.uuid,
        service: service.ok_or_else(|| refused(not_found))?,
        commit: current.app.commit.as_ref().map(model::Commit::as_str),
    })
}

fn refused(text: &'static str) -> Failure {
    Failure::Plain(StatusCode::BAD_REQUEST, text)
}

/// The only container of the device.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct OnlyContainer<'a> {
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

async fn app(
    State(api): State<Api>,
    caller: Caller,
    Path([id]): Path<1>,
) -> Result<Response, Failure> {
    let id = lenient::parse_int(&id).ok_or_else(|| refused("Missing app id"))?;
    if !services::app_id(id).is_some_and(|id| caller.scope.covers(id)) {
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
    let container = OnlyContainer {
        app_id: id,
        commit: only.commit,
        container_id: container.as_str(),
        env,
        image_id: only.service.image.as_str(),
        release_id: only.service.release.0,
    };
    Ok(Json(container).into_response())
}

/// The container that was stopped or started.
#[derive(Serialize, JsonSchema)]
struct ActedContainer<'a> {
    #[serde(rename = "containerId")]
    container_id: &'a str,
}

async fn act(
    State(api): State<Api>,
    caller: Caller,
    Path([id]): Path<1>,
    Fields(body): Fields<ForceFlag>,
    verb: fn(ServiceName) -> Verb,
) -> Result<Response, Failure> {
    let id = lenient::parse_int(&id).ok_or_else(|| refused("Invalid app id"))?;
    if !services::app_id(id).is_some_and(|id| caller.scope.covers(id)) {
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
    api.device.act(action).await?;
    // The action may have waited for another that recreated the container.
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
    let container_id = container.as_str();
    Ok(Json(ActedContainer { container_id }).into_response())
}
