//! `GET /v2/state/status`: containers and images of one app (docs/spec/device.md#v2-state-status).

use axum::extract::State;
use axum::response::IntoResponse;
use device_types::Moment;
use model::{AppId, DeviceStatus};
use schemars::JsonSchema;
use serde::Serialize;

use crate::answer::Json;
use crate::caller::{Caller, KeyScope};
use crate::message::Response;
use crate::operation::{Answer, schema};
use crate::route::Route;
use crate::state::Api;

pub(crate) fn routes() -> Vec<Route> {
    vec![
        Route::get("/v2/state/status", state_status)
            .summary("whether the state has settled, with the containers and images of one app")
            .answering([Answer::json(
                "the containers and images",
                schema::<StateStatus>,
            )]),
    ]
}

/// Whether the state has settled, with the containers and images of one app.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct StateStatus<'a> {
    status: &'static str,
    /// `applying` or `applied`.
    app_state: &'static str,
    /// Percent, while images are downloaded.
    overall_download_progress: Option<u64>,
    containers: Vec<StatusContainer<'a>>,
    images: Vec<StatusImage<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    release: Option<&'a str>,
}

/// A container of the app.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct StatusContainer<'a> {
    status: &'static str,
    service_name: &'a str,
    app_id: u64,
    image_id: u64,
    service_id: u64,
    container_id: &'a str,
    /// ISO 8601.
    created_at: Option<String>,
}

/// An image of the app.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct StatusImage<'a> {
    name: &'a str,
    app_id: u64,
    service_name: &'a str,
    image_id: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    docker_image_id: Option<&'a str>,
    status: &'static str,
    download_progress: Option<u8>,
}

async fn state_status(State(api): State<Api>, Caller { scope, .. }: Caller) -> Response {
    let status = api.device.status();
    let chosen = chosen_app(&status, scope);
    let app = chosen.and_then(|id| status.apps.values().find(|app| app.id == id));
    let state = StateStatus {
        status: "success",
        app_state: if status.applying {
            "applying"
        } else {
            "applied"
        },
        overall_download_progress: overall_progress(&status, scope),
        containers: containers(&status, chosen),
        images: images(&status, chosen),
        release: app
            .and_then(|app| app.commit.as_ref())
            .map(model::Commit::as_str),
    };
    Json(state).into_response()
}

/// Returns the app of the first container, else of the first image.
fn chosen_app(status: &DeviceStatus, scope: KeyScope) -> Option<AppId> {
    let with_container = status
        .apps
        .values()
        .filter(|app| scope.covers(app.id))
        .find(|app| {
            app.services
                .iter()
                .any(|service| service.container.is_some())
        })
        .map(|app| app.id);
    with_container.or_else(|| {
        status
            .images
            .iter()
            .map(|image| image.app_id)
            .find(|app| scope.covers(*app))
    })
}

fn containers(status: &DeviceStatus, chosen: Option<AppId>) -> Vec<StatusContainer<'_>> {
    let apps = status.apps.values().filter(|app| Some(app.id) == chosen);
    apps.flat_map(|app| {
        app.services.iter().filter_map(|service| {
            Some(StatusContainer {
                status: service.state.into(),
                service_name: service.name.as_str(),
                app_id: app.id.0,
                image_id: service.image_id.0,
                service_id: service.id.0,
                container_id: service.container.as_ref()?.as_str(),
                created_at: service
                    .created_at_ms
                    .and_then(|at| Moment(at).to_iso_8601()),
            })
        })
    })
    .collect()
}

fn images(status: &DeviceStatus, chosen: Option<AppId>) -> Vec<StatusImage<'_>> {
    status
        .images
        .iter()
        .filter(|image| Some(image.app_id) == chosen)
        .map(|image| StatusImage {
            name: image.name.as_str(),
            app_id: image.app_id.0,
            service_name: image.service.as_str(),
            image_id: image.image_id.0,
            docker_image_id: image.engine_id.as_ref().map(model::EngineImageId::as_str),
            status: image.state.into(),
            download_progress: image.download_progress,
        })
        .collect()
}

/// Returns the mean over the images that are being downloaded, of all apps that the key covers.
fn overall_progress(status: &DeviceStatus, scope: KeyScope) -> Option<u64> {
    let under_way: Vec<u64> = status
        .images
        .iter()
        .filter(|image| scope.covers(image.app_id))
        .filter_map(|image| image.download_progress.map(u64::from))
        .collect();
    let count = u64::try_from(under_way.len())
        .ok()
        .filter(|count| *count > 0)?;
    Some((under_way.iter().sum::<u64>() + count / 2) / count)
}
