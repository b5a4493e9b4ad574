//! Requests to a device itself, through the cloud's proxy (`POST /supervisor/…`).

use std::time::Duration;

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::arguments::device::ForcibleAction;
use crate::cloud::{Cloud, message_in};
use crate::failure::{Failure, Result};
use crate::find::{self, Device};
use crate::output::Output;

/// The time limit for an answer. The cloud allows a device 50 s to begin it.
const PATIENCE: Duration = Duration::from_secs(80);

/// An action of a device.
pub(crate) enum ActionKind {
    Restart,
    RestartService(String),
    StopService(String),
    StartService(String),
    Reboot,
    Shutdown,
    Purge,
    Blink,
    Ping,
    Update,
}

/// Runs the action on the device and prints the result.
///
/// # Errors
/// If the device cannot be reached, or refuses.
pub(crate) async fn run(
    cloud: &Cloud,
    output: &Output,
    target: &ForcibleAction,
    act: &ActionKind,
) -> Result<()> {
    let device = find::device(cloud, &target.device).await?;
    let waiting = output.waiting(&format!("asking {}", device.device_name));
    let answer = ask(cloud, &device, act, target.force).await?;
    drop(waiting);
    output.done(
        format!("{} {}", device.name(), answer.sentence),
        &json!({ "device": device.uuid, "status": answer.status.as_u16(), "answer": answer.body }),
    );
    Ok(())
}

/// The answer of a device that has performed the action.
pub(super) struct Answer {
    status: StatusCode,
    body: Value,
    /// What it did, to be printed after its name.
    sentence: String,
}

/// Sends the action to one device.
///
/// # Errors
/// If the device cannot be reached, or refuses.
pub(super) async fn ask(
    cloud: &Cloud,
    device: &Device,
    act: &ActionKind,
    force: bool,
) -> Result<Answer> {
    let request = request(device, act, force)?;
    let body = json!({
        "uuid": device.uuid,
        "method": request.method,
        "data": request.data,
    });
    let path = format!("/supervisor{}", request.path);
    let answer = cloud
        .send(Method::POST, &path, Some(&body), Some(PATIENCE))
        .await?;
    let status = answer.status();
    let bytes = cloud.read(answer).await?;
    if !status.is_success() {
        // If the service does not exist, this error lists the existing ones.
        if let ActionKind::RestartService(name)
        | ActionKind::StopService(name)
        | ActionKind::StartService(name) = act
            && status == StatusCode::NOT_FOUND
            && !is_not_connected(&bytes)
        {
            find::service(cloud, device.fleet()?, name).await?;
        }
        return Err(refusal(cloud, device, act, status, &bytes));
    }
    let body = serde_json::from_slice(&bytes)
        .unwrap_or_else(|_| Value::String(String::from_utf8_lossy(&bytes).into_owned()));
    Ok(Answer {
        status,
        body,
        sentence: request.sentence,
    })
}

/// A request to the device's own API, and the message about a device that has accepted it.
struct DeviceRequest {
    method: &'static str,
    path: String,
    data: Value,
    sentence: String,
}

fn request(device: &Device, act: &ActionKind, force: bool) -> Result<DeviceRequest> {
    let simple = |path: &str, data: Value, sentence: &str| DeviceRequest {
        method: "POST",
        path: path.to_owned(),
        data,
        sentence: sentence.to_owned(),
    };
    let service = |verb: &str, name: &str, did: &str| {
        Ok::<_, Failure>(simple(
            &format!("/v2/applications/{}/{verb}-service", device.fleet()?),
            json!({ "serviceName": name, "force": force }),
            &format!("{did} {name}"),
        ))
    };
    Ok(match act {
        ActionKind::Restart => simple(
            "/v1/restart",
            json!({ "appId": device.fleet()?, "force": force }),
            "restarted its services",
        ),
        ActionKind::RestartService(name) => service("restart", name, "restarted")?,
        ActionKind::StopService(name) => service("stop", name, "stopped")?,
        ActionKind::StartService(name) => service("start", name, "started")?,
        ActionKind::Reboot => simple("/v1/reboot", json!({ "force": force }), "reboots"),
        ActionKind::Shutdown => simple("/v1/shutdown", json!({ "force": force }), "shuts down"),
        ActionKind::Purge => simple(
            "/v1/purge",
            json!({ "appId": device.fleet()?, "force": force }),
            "emptied the volumes of its services",
        ),
        ActionKind::Blink => simple("/v1/blink", json!({}), "blinks"),
        ActionKind::Ping => DeviceRequest {
            method: "GET",
            ..simple("/ping", json!({}), "answers")
        },
        ActionKind::Update => simple(
            "/v1/update",
            json!({ "force": force }),
            "checks for its target",
        ),
    })
}

/// Returns whether a 404 comes from the cloud because the device is not connected.
fn is_not_connected(body: &[u8]) -> bool {
    message_in(body).is_some_and(|words| words.contains("online"))
}

fn refusal(
    cloud: &Cloud,
    device: &Device,
    act: &ActionKind,
    status: StatusCode,
    body: &[u8],
) -> Failure {
    let name = device.name();
    let words = message_in(body);
    let with_words = |sentence: String| match &words {
        Some(words) => format!("{sentence}: {words}"),
        None => sentence,
    };
    match status {
        // The device itself was found, so the cloud means that its tunnel is missing.
        StatusCode::NOT_FOUND if is_not_connected(body) => {
            Failure::failed(format!("the device {name} is not connected"))
                .hint("`fleet device show` shows since when")
        }
        StatusCode::LOCKED => {
            let failure = Failure::failed(with_words(format!(
                "an update lock holds the device {name}"
            )));
            match act {
                ActionKind::Blink | ActionKind::Ping => failure,
                _ => failure.hint("`--force` overrides update locks"),
            }
        }
        StatusCode::BAD_GATEWAY | StatusCode::GATEWAY_TIMEOUT => {
            Failure::failed(with_words(format!("the device {name} did not answer")))
        }
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => cloud.refusal(status, body),
        status => Failure::failed(with_words(format!("the device {name} answered {status}"))),
    }
}
