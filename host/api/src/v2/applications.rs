//! `GET /v2/applications/state` and `GET /v2/applications/:appId/state` (docs/spec/device.md#v2-apps).

use std::collections::BTreeMap;

use http::{Method, StatusCode};
use model::{AppStatus, DeviceStatus, ServiceState, ServiceStatus};
use schemars::JsonSchema;
use serde::Serialize;

use crate::answer::{self, Failure};
use crate::app::Api;
use crate::auth::Scope;
use crate::call::Call;
use crate::operation::{Answer, Operation, schema};
use crate::routes::{Handler, Outcome, Route};

pub(crate) const ROUTES: &[Route] = &[
    Route {
        method: Method::GET,
        path: "/v2/applications/state",
        summary: "the services of all apps, by app name",
        operation: Operation::answering(&[Answer::json(
            "the apps by name",
            schema::<BTreeMap<String, App>>,
        )]),
        handler: Handler::Now(all),
    },
    Route {
        method: Method::GET,
        path: "/v2/applications/:appId/state",
        summary: "the services of one app, by service id",
        operation: Operation::answering(&[
            Answer::json("the services by number", schema::<OneApp>),
            Answer::failed(StatusCode::BAD_REQUEST, "`appId` is not a number"),
            Answer::failed(
                StatusCode::CONFLICT,
                "the device has no such app, or the key is of another",
            ),
        ]),
        handler: Handler::Now(one),
    },
];

/// An app and its services.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "AppState")]
struct App<'a> {
    app_id: u64,
    app_uuid: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    commit: Option<&'a str>,
    update_status: &'static str,
    services: BTreeMap<&'a str, Service<'a>>,
}

/// A service of the target.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "ServiceState")]
struct Service<'a> {
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

fn all(api: &Api, call: &Call) -> Outcome {
    let (status, facts) = (api.device.status(), api.device.facts());
    Ok(answer::written_json(match call.caller.scope {
        Scope::All => api
            .applications
            .of(status, facts, |status, _| write(status, Scope::All)),
        scope @ Scope::App(_) => write(&status, scope).into(),
    }))
}

/// Apps that the key does not cover are left out without a word. Of two apps with one name the last is
/// shown.
fn write(status: &DeviceStatus, scope: Scope) -> Vec<u8> {
    let apps: BTreeMap<&str, App<'_>> = status
        .apps
        .iter()
        .filter(|(_, app)| scope.covers(app.id))
        .map(|(uuid, app)| {
            let shown = App {
                app_id: app.id.0,
                app_uuid: uuid.as_str(),
                commit: app.target_commit.as_ref().map(model::Commit::as_str),
                update_status: app.state.as_str(),
                services: services_of_target(app),
            };
            (app.name.as_str(), shown)
        })
        .collect();
    // Strings and numbers under string keys: writing them cannot fail.
    serde_json::to_vec(&apps).unwrap_or_default()
}

/// The services of the target's release, under that release's number.
fn services_of_target(app: &AppStatus) -> BTreeMap<&str, Service<'_>> {
    app.services
        .iter()
        .filter(|service| service.in_target)
        .map(|service| {
            let shown = Service {
                status: service.state.as_str(),
                release_id: app.target_release.unwrap_or(service.release).0,
                download_progress: service.download_progress,
                image: service.image.as_str(),
            };
            (service.name.as_str(), shown)
        })
        .collect()
}

/// An app that the key does not cover is answered as one that does not exist.
fn one(api: &Api, call: &Call) -> Outcome {
    let Some(id) = lenient::parse_int(call.segment()).filter(|id| *id != 0) else {
        return Err(Failure::invalid(format!(
            "Invalid application ID: {}",
            call.segment()
        )));
    };
    let status = api.device.status();
    let app = status
        .apps
        .values()
        .find(|app| i64::try_from(app.id.0) == Ok(id) && call.caller.scope.covers(app.id));
    let Some(app) = app else {
        return Err(Failure::Refused(
            StatusCode::CONFLICT,
            format!("Application ID does not exist: {id}"),
        ));
    };
    Ok(answer::json(&OneApp {
        commit: app.commit.as_ref().map(model::Commit::as_str),
        local: BTreeMap::from([(
            app.id.0,
            Services {
                services: services_by_id(&app.services),
            },
        )]),
    }))
}

/// Two containers of one service are a hand-over, shown under the release of the older one.
fn services_by_id(services: &[ServiceStatus]) -> BTreeMap<u64, ServiceById> {
    let mut by_id: BTreeMap<u64, ServiceById> = BTreeMap::new();
    for service in services {
        by_id
            .entry(service.id.0)
            .and_modify(|older| {
                if service.container.is_some() {
                    older.status = ServiceState::HandingOver.as_str();
                }
            })
            .or_insert_with(|| ServiceById {
                status: service.state.as_str(),
                release_id: service.release.0,
                download_progress: service.download_progress,
            });
    }
    by_id
}
