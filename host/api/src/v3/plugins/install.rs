//! `PUT` and `DELETE /v3/plugins/:name`: a developer installs a plugin on a device of their own, and removes it.
//!
//! A plugin is code, so this requires the device's own key, and a device on which files need no pin. On all others the
//! owner copies the file and writes the policy.

use std::time::Duration;

use axum::extract::State;
use device_types::{InstallRefusal, PluginInstallation};
use http::header::CONTENT_LENGTH;
use http::{Method, StatusCode};
use http_body_util::BodyExt as _;
use schemars::JsonSchema;
use serde::Serialize;
use tokio::time::{Instant, timeout_at};

use super::no_such_plugin;
use crate::answer::{Failure, Json};
use crate::body::refuse_encoding;
use crate::bounds::{PLUGIN_BODY, PLUGIN_PIECE_WITHIN, PLUGIN_WITHIN};
use crate::caller::{Caller, Requester};
use crate::extract::Path;
use crate::message::Request;
use crate::operation::{Answer, schema};
use crate::route::Route;
use crate::state::Api;

pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::new(Method::PUT, "/v3/plugins/:name", install)
            .summary("installs a plugin on a device in developer mode")
            .taking_component()
            .answering([
                Answer::json(
                    "the version and digest of the file, and the state of the plugin",
                    schema::<InstallAnswer>,
                ),
                Answer::failed(400, "the body is not the plugin that the path names"),
                Answer::failed(401, "the key is not the device's own"),
                NOT_A_DEVELOPERS,
                IN_THE_WAY,
            ]),
        Route::new(Method::DELETE, "/v3/plugins/:name", uninstall)
            .summary("removes a plugin from a device in developer mode")
            .answering([
                Answer::json("the plugin is removed", schema::<UninstallAnswer>),
                Answer::failed(400, "the name is not one of a plugin"),
                Answer::failed(401, "the key is not the device's own"),
                NOT_A_DEVELOPERS,
                Answer::failed(404, "the device has no such plugin"),
                IN_THE_WAY,
            ]),
    ]
}

const NOT_A_DEVELOPERS: Answer = Answer::failed(403, "the device is not in developer mode");
const IN_THE_WAY: Answer = Answer::failed(
    409,
    "the plugin is a stock plugin, or something else has the name of its file",
);

/// The body of `PUT /v3/plugins/:name`.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "PluginInstalled")]
struct InstallAnswer {
    status: &'static str,
    #[serde(flatten)]
    installation: PluginInstallation,
}

/// The body of `DELETE /v3/plugins/:name`.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "PluginRemoved")]
struct UninstallAnswer {
    status: &'static str,
}

async fn install(
    State(api): State<Api>,
    caller: Caller,
    Path([name]): Path<1>,
    request: Request,
) -> Result<Json<InstallAnswer>, Failure> {
    require_developer(&api, &caller).await?;
    refuse_encoding(&request)?;
    let announced = request.headers().get(CONTENT_LENGTH);
    let announced = announced.and_then(|length| length.to_str().ok()?.parse::<u64>().ok());
    if announced.is_some_and(|length| length > PLUGIN_BODY) {
        return Err(too_large());
    }
    let mut upload = api.endpoints.begin_install(&name).await?;
    let end = Instant::now() + PLUGIN_WITHIN;
    let mut body = request.into_body();
    let mut length = 0_u64;
    loop {
        let silent = Instant::now() + PLUGIN_PIECE_WITHIN;
        let (deadline, late) = if silent < end {
            (
                silent,
                too_slow("nothing of it arrived for", PLUGIN_PIECE_WITHIN),
            )
        } else {
            (end, too_slow("it took longer than", PLUGIN_WITHIN))
        };
        let frame = timeout_at(deadline, body.frame()).await;
        let frame = frame.map_err(|_| late)?;
        let Some(frame) = frame else {
            break;
        };
        let frame =
            frame.map_err(|_| Failure::invalid("the request body ended before it was complete"))?;
        let Ok(piece) = frame.into_data() else {
            continue;
        };
        length = length.saturating_add(piece.len() as u64);
        if length > PLUGIN_BODY {
            return Err(too_large());
        }
        upload.write(piece).await?;
    }
    let installation = upload.finish().await?;
    Ok(Json(InstallAnswer {
        status: "success",
        installation,
    }))
}

async fn uninstall(
    State(api): State<Api>,
    caller: Caller,
    Path([name]): Path<1>,
) -> Result<Json<UninstallAnswer>, Failure> {
    require_developer(&api, &caller).await?;
    api.endpoints.uninstall(&name).await?;
    Ok(Json(UninstallAnswer { status: "success" }))
}

/// Refuses callers other than the owner, and devices that do not belong to a developer.
async fn require_developer(api: &Api, caller: &Caller) -> Result<(), Failure> {
    if caller.requester() != Requester::DeviceKey {
        return Err(Failure::out_of_scope());
    }
    // This is not known before.
    api.endpoints.wait_until_listed().await;
    if api.endpoints.allow_unpinned() {
        return Ok(());
    }
    Err(Failure::Refused(
        StatusCode::FORBIDDEN,
        "the device is not in developer mode, and accepts plugins only in its plugin folders: copy the file to the \
         device and run `supervisor plugins install FILE` there, or start the supervisor of a device of your own with `--allow-unpinned`"
            .into(),
    ))
}

fn too_large() -> Failure {
    Failure::Refused(
        StatusCode::PAYLOAD_TOO_LARGE,
        format!("the plugin is larger than {} MiB", PLUGIN_BODY >> 20),
    )
}

fn too_slow(what: &str, time: Duration) -> Failure {
    Failure::Refused(
        StatusCode::REQUEST_TIMEOUT,
        format!("the plugin did not arrive: {what} {} s", time.as_secs()),
    )
}

impl From<InstallRefusal> for Failure {
    fn from(refusal: InstallRefusal) -> Self {
        match refusal {
            InstallRefusal::Invalid(why) => Failure::invalid(why),
            InstallRefusal::Conflict(why) => Failure::Refused(StatusCode::CONFLICT, why),
            InstallRefusal::Unknown => no_such_plugin(),
            InstallRefusal::Failed(why) => Failure::unavailable(why),
        }
    }
}
