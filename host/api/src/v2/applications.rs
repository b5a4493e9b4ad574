//! `GET /v2/applications/state` and `GET /v2/applications/:appId/state` (docs/spec/device.md#v2-apps).

use std::collections::BTreeMap;

use axum::extract::State;
use axum::response::IntoResponse;
use http::StatusCode;
use model::{AppStatus, DeviceStatus, ServiceStatus};
use schemars::JsonSchema;
use serde::Serialize;

use crate::answer::{Failure, Json, WrittenJson};
use crate::cached_json::StateVersion;
use crate::caller::{Caller, KeyScope};
use crate::extract::Path;
use crate::message::Response;
use crate::operation::{Answer, schema};
use crate::route::Route;
use crate::state::Api;

pub(crate) fn routes() -> Vec<Route> {
    vec![
        Route::get("/v2/applications/state", all)
            .summary("the services of all apps, by app name")
            .answering([Answer::json(
                "the apps by name",
                schema::<BTreeMap<String, AppState>>,
            )]),
        Route::get("/v2/applications/:appId/state", one)
            .summary("the services of one app, by service id")
            .answering([
                Answer::json("the services by number", schema::<OneApp>),
                Answer::failed(400, "`appId` is not a number"),
                Answer::failed(409, "the device has no such app, or the key is of another"),
            ]),
    ]
}

/// An app and its services.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct AppState<'a> {
    app_id: u64,
    app_uuid: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    commit: Option<&'a str>,
    update_status: &'static str,
    services: BTreeMap<&'a str, ServiceState<'a>>,
}

/// A service of the target.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct ServiceState<'a> {
    status: &'static str,
    release_id: u64,
    download_progress: Option<u8>,
    image: &'a str,
}

/// One app.
#[derive(Serialize, JsonSchema)]
struct OneApp<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    commit: Option<&'a str>,
    local: BTreeMap<u64, Services>,
}

/// The services of one app, by their numbers.
#[derive(Serialize, JsonSchema)]
struct Services {
    services: BTreeMap<u64, ServiceById>,
}

/// This answer writes `download_progress` where the list writes `downloadProgress`.
#[derive(Serialize, JsonSchema)]
struct ServiceById {
    status: &'static str,
    #[serde(rename = "releaseId")]
    release_id: u64,
    download_progress: Option<u8>,
}

async fn all(State(api): State<Api>, caller: Caller) -> WrittenJson {
    WrittenJson(match caller.scope {
        KeyScope::All => {
            let state = StateVersion::current(&*api.device);
            let draw = |state: &StateVersion| write(&state.status, KeyScope::All);
            api.applications.get(state, draw)
        }
        scope @ KeyScope::App(_) => write(&api.device.status(), scope).into(),
    })
}

/// Serializes the apps. Those that the key does not cover are left out silently. Of two apps with the same name, the
/// last is shown.
fn write(status: &DeviceStatus, scope: KeyScope) -> Vec<u8> {
    let apps: BTreeMap<&str, AppState<'_>> = status
        .apps
        .iter()
        .filter(|(_, app)| scope.covers(app.id))
        .map(|(uuid, app)| {
            let state = AppState {
                app_id: app.id.0,
                app_uuid: uuid.as_str(),
                commit: app.target_commit.as_ref().map(model::Commit::as_str),
                update_status: app.state.into(),
                services: services_of_target(app),
            };
            (app.name.as_str(), state)
        })
        .collect();
    // Strings and numbers under string keys: writing them cannot fail.
    serde_json::to_vec(&apps).unwrap_or_default()
}

/// Returns the services of the target's release, under that release's number.
fn services_of_target(app: &AppStatus) -> BTreeMap<&str, ServiceState<'_>> {
    app.services
        .iter()
        .filter(|service| service.in_target)
        .map(|service| {
            let state = ServiceState {
                status: service.state.into(),
                release_id: app.target_release.unwrap_or(service.release).0,
                download_progress: service.download_progress,
                image: service.image.as_str(),
            };
            (service.name.as_str(), state)
        })
        .collect()
}

/// Shows one app. If the key does not cover it, the answer is as if it did not exist.
async fn one(
    State(api): State<Api>,
    caller: Caller,
    Path([segment]): Path<1>,
) -> Result<Response, Failure> {
    let Some(id) = lenient::parse_int(&segment).filter(|id| *id != 0) else {
        return Err(Failure::invalid(format!(
            "Invalid application ID: {segment}"
        )));
    };
    let status = api.device.status();
    let mut apps = status.apps.values();
    let app = apps
        .find(|app| i64::try_from(app.id.0) == Ok(id) && caller.scope.covers(app.id))
        .ok_or_else(|| {
            Failure::Refused(
                StatusCode::CONFLICT,
                format!("Application ID does not exist: {id}"),
            )
        })?;
    let services = services_by_id(&app.services);
    let app = OneApp {
        commit: app.commit.as_ref().map(model::Commit::as_str),
        local: BTreeMap::from([(app.id.0, Services { services })]),
    };
    Ok(Json(app).into_response())
}

/// Returns the services by id. Two containers of one service are a hand-over, shown under the release of the older one.
fn services_by_id(services: &[ServiceStatus]) -> BTreeMap<u64, ServiceById> {
    let mut by_id: BTreeMap<u64, ServiceById> = BTreeMap::new();
    for service in services {
        by_id
            .entry(service.id.0)
            .and_modify(|older| {
                if service.container.is_some() {
                    older.status = model::ServiceState::HandingOver.into();
                }
            })
            .or_insert_with(|| ServiceById {
                status: service.state.into(),
                release_id: service.release.0,
                download_progress: service.download_progress,
            });
    }
    by_id
}
