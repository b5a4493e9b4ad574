//! `GET /v1/device`: the device's state in a few fields (docs/spec/device.md#v1-device).

use axum::extract::State;
use model::{AppStatus, Branding, DeviceStatus, ServiceState};
use schemars::JsonSchema;
use serde::Serialize;

use crate::answer::WrittenJson;
use crate::cached_json::StateVersion;
use crate::device::Facts;
use crate::operation::{Answer, schema};
use crate::route::Route;
use crate::state::Api;

pub(crate) fn routes() -> Vec<Route> {
    vec![
        Route::get("/v1/device", device)
            .summary("the state of the device and of its first service")
            .answering([Answer::json("the state", schema::<DeviceState>)]),
    ]
}

/// Fields that are not known are left out rather than null; only the progress is null when there is none.
#[derive(Serialize, JsonSchema)]
struct DeviceState<'a> {
    api_port: u16,
    #[serde(skip_serializing_if = "Option::is_none")]
    ip_address: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    mac_address: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    os_version: Option<&'a str>,
    supervisor_version: &'a str,
    update_pending: bool,
    update_failed: bool,
    update_downloaded: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    commit: Option<&'a str>,
    #[serde(flatten)]
    service: Option<FirstService>,
}

#[derive(Serialize, JsonSchema)]
struct FirstService {
    status: &'static str,
    download_progress: Option<u8>,
}

async fn device(State(api): State<Api>) -> WrittenJson {
    let state = StateVersion::current(&*api.device);
    WrittenJson(api.device_state.get(state, |state| {
        write(&state.status, &state.facts, &api.settings.branding)
    }))
}

/// Serializes the answer as JSON; plugins also read it as the device's state.
pub fn write(status: &DeviceStatus, facts: &Facts, branding: &Branding) -> Vec<u8> {
    let first_app = first_app(status);
    let state = DeviceState {
        api_port: facts.api_port,
        ip_address: facts.ip_address.as_deref(),
        mac_address: facts.mac_address.as_deref(),
        os_version: facts.os_version.as_deref(),
        supervisor_version: &branding.api_level,
        update_pending: status.update_pending,
        update_failed: status.update_failed,
        update_downloaded: status.update_downloaded,
        commit: first_app
            .filter(|_| !status.applying)
            .and_then(|app| app.commit.as_ref())
            .map(model::Commit::as_str),
        service: first_app
            .and_then(|app| app.services.first())
            .map(|service| FirstService {
                status: word(service.state),
                download_progress: service.download_progress,
            }),
    };
    // Strings, numbers and flags: writing them cannot fail.
    serde_json::to_vec(&state).unwrap_or_default()
}

fn first_app(status: &DeviceStatus) -> Option<&AppStatus> {
    status.apps.values().min_by_key(|app| app.id)
}

/// Returns one of the five words that the API promises (docs/spec/device.md#v1-device-status).
fn word(state: ServiceState) -> &'static str {
    match state {
        ServiceState::Downloading | ServiceState::Downloaded => "Downloading",
        ServiceState::Installing | ServiceState::Installed => "Installing",
        ServiceState::Starting => "Starting",
        ServiceState::Stopping => "Stopping",
        _ => "Idle",
    }
}
