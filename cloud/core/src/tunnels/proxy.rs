//! `POST /supervisor/<url>`: requests to the supervisor of a device, from a caller who may see the device
//! (docs/spec/cloud.md#supervisor-proxy).
//!
//! The answer of a single device is streamed, whatever its length: it is read as fast as the caller reads. The answers
//! of a fleet's devices are collected, each of limited size and in limited time, and sent in order.

mod answer;
mod request;

use std::time::Duration;

use axum::body::{Body, Bytes, HttpBody as _};
use axum::response::Response;
use data::RowRight;
use data::audit::{self, Event};
use futures::stream::{self, BoxStream, Stream};
use futures::{FutureExt as _, StreamExt as _};
use http::{Method, StatusCode, Uri};
use resources::Action;
use serde_json::{Map, Value, json};
use tokio::time::{Instant, sleep_until, timeout};

use super::device_connections::connected;
use super::device_request::{DeviceError, DeviceRequest, DeviceTarget, send, targets};
use crate::answer::{Answer, Refusal, json as json_answer};
use crate::clock::now;
use crate::cloud::{Cloud, SharedCloud};
use crate::credential::Identity;
use crate::lease::{Lease, Need};
pub use answer::{CollectedAnswer, DeviceAnswer};
use request::{ProxyRequest, Recipients};

/// Delay between the devices of a fleet (docs/spec/cloud.md#supervisor-proxy).
const BETWEEN: Duration = Duration::from_millis(50);
/// Devices of a fleet whose answers are awaited at the same time.
const AT_A_TIME: usize = 256;
/// The message if no device can be reached.
const NOBODY: &str = "No online device(s) found";

/// Passes a request on: the address after `/supervisor`, and its body.
///
/// # Errors
/// The answer to a failed request.
pub async fn pass_on(
    cloud: SharedCloud,
    identity: &Identity,
    address: &Uri,
    body: &Map<String, Value>,
) -> Answer {
    let request = ProxyRequest::parse(address, body).map_err(Refusal::Wrong)?;
    // Boxed for the compiler, as statements are (cloud/data/src/connection.rs).
    passed(cloud, identity, request).boxed().await
}

/// Makes every connected device of a fleet restart the fleet's services.
///
/// # Errors
/// As for [`pass_on`].
pub async fn restart(cloud: SharedCloud, identity: &Identity, fleet: i64) -> Answer {
    passed(cloud, identity, ProxyRequest::restart(fleet))
        .boxed()
        .await
}

/// Sends a GET request to these devices of a fleet, and returns their answers, in the order in which they arrive. A
/// device that is not connected is missing; one that does not answer in time, or too much, costs the others nothing.
///
/// # Errors
/// As for [`pass_on`]. The right on the fleet is checked, as for a request to all its devices.
pub async fn look_up_each(
    cloud: SharedCloud,
    identity: &Identity,
    fleet: i64,
    devices: Vec<i64>,
    path: &str,
) -> Result<BoxStream<'static, DeviceAnswer>, Refusal> {
    if devices.is_empty() {
        return Err(Refusal::Missing(NOBODY.to_owned()));
    }
    let request = ProxyRequest::look_up(fleet, devices, path);
    // Boxed for the same reason.
    let devices = recipients_of(&cloud, identity, &request).boxed().await?;
    let answers = requests(cloud, devices, request.device_request);
    Ok(answers.buffer_unordered(AT_A_TIME).boxed())
}

async fn passed(cloud: SharedCloud, identity: &Identity, request: ProxyRequest) -> Answer {
    let mut devices = recipients_of(&cloud, identity, &request).await?;
    let ProxyRequest {
        recipients,
        device_request,
    } = request;
    match (recipients.is_one(), devices.pop()) {
        (_, None) => Err(Refusal::Missing(NOBODY.to_owned())),
        (true, Some(device)) => one(&cloud, identity, &device, &device_request).await,
        (false, Some(device)) if devices.is_empty() => {
            one(&cloud, identity, &device, &device_request).await
        }
        (false, Some(device)) => {
            devices.push(device);
            Ok(several(cloud, devices, device_request))
        }
    }
}

/// Returns the connected devices that a request is for, after the caller's right to it is checked and it is recorded.
async fn recipients_of(
    cloud: &Cloud,
    identity: &Identity,
    request: &ProxyRequest,
) -> Result<Vec<DeviceTarget>, Refusal> {
    let ProxyRequest {
        recipients,
        device_request,
    } = request;
    let online = online(cloud, identity, recipients).await?;
    if online.is_empty() {
        return Err(Refusal::Missing(NOBODY.to_owned()));
    }
    let action = needed(device_request);
    if let Some(action) = action {
        permitted(cloud, identity, recipients, &online, action).await?;
    }
    if action == Some(Action::SupervisorProxyWrite) {
        note(cloud, recipients, &online, device_request).await?;
    }
    Ok(targets(&cloud.tunnels, &online).await?)
}

/// Returns the right that a request needs in addition to the right to see the device. The answer to a GET may contain
/// variables (`/v1/apps/:appId`, the local target state, routes of plugins unknown to this cloud), so all but a few
/// addresses need the right to read those.
fn needed(device_request: &DeviceRequest) -> Option<Action> {
    match device_request.method {
        Method::GET | Method::HEAD if is_status(&device_request.path) => None,
        Method::GET | Method::HEAD => Some(Action::ReadTargetState),
        _ => Some(Action::SupervisorProxyWrite),
    }
}

/// Addresses of supervisors (device API) that report the device's status and no variables.
const STATUS: [&str; 9] = [
    "/ping",
    "/v1/healthy",
    "/v1/device",
    "/v2/version",
    "/v2/state/status",
    "/v2/containerId",
    "/v2/applications/state",
    "/v2/device/name",
    "/v2/device/vpn",
];

fn is_status(path: &str) -> bool {
    let of_app = |path: &str| {
        let app = path.strip_prefix("/v2/applications/")?;
        app.strip_suffix("/state")?.parse::<u64>().ok()
    };
    STATUS
        .iter()
        .any(|status_path| status_path.eq_ignore_ascii_case(path))
        || of_app(path).is_some()
}

/// Returns those of the devices that the caller may see and that are connected.
async fn online(
    cloud: &Cloud,
    identity: &Identity,
    recipients: &Recipients,
) -> Result<Vec<RowRight>, Refusal> {
    let filter = format!("$filter={}", recipients.filter());
    let parsed = odata::parse("/device", Some(&filter))?;
    let setting = cloud.setting(&identity.caller);
    let rights = cloud
        .database
        .rights(&setting, &parsed, resources::Method::Read)
        .await?;
    Ok(connected(&cloud.tunnels, rights).await?)
}

/// Checks that the caller may do this with each device; if only a fleet is named, the right on the fleet is checked.
async fn permitted(
    cloud: &Cloud,
    identity: &Identity,
    recipients: &Recipients,
    online: &[RowRight],
    action: Action,
) -> Result<(), Refusal> {
    let may = async |resource, id| -> Result<bool, Refusal> {
        let right = cloud.right(&identity.caller, resource, id, action).await?;
        Ok(right.is_some())
    };
    let forbidden = |what: &str| {
        Err(Refusal::Forbidden(match action {
            Action::SupervisorProxyWrite => format!("no right to change anything at {what}"),
            _ => format!(
                "no right to read the target state and the variables of {what}: request its status instead"
            ),
        }))
    };
    if let Some(fleet) = recipients.whole_fleet() {
        return if may("application", fleet).await? {
            Ok(())
        } else {
            forbidden("the devices of this fleet")
        };
    }
    for device in online {
        if !may("device", device.id()).await? {
            return forbidden("this device");
        }
    }
    Ok(())
}

/// Records in the audit log that somebody had devices do something; if only a fleet is named, the fleet is recorded.
async fn note(
    cloud: &Cloud,
    recipients: &Recipients,
    online: &[RowRight],
    device_request: &DeviceRequest,
) -> Result<(), Refusal> {
    let online: Vec<i64> = online.iter().map(RowRight::id).collect();
    let path = device_request.path.split('?').next().unwrap_or_default();
    let fields = json!({ "method": device_request.method.as_str(), "path": path }).to_string();
    let fleet = recipients.whole_fleet();
    let event = Event {
        verb: "ask",
        resource: match fleet {
            Some(_) => "application",
            None => "device",
        },
        ids: match &fleet {
            Some(fleet) => std::slice::from_ref(fleet),
            None => &online,
        },
        fields: Some(&fields),
    };
    Ok(audit::note_alone(&cloud.database, None, event, now()).await?)
}

/// Returns how long a device may take until the head of its answer (docs/spec/cloud.md#supervisor-proxy).
fn patience(cloud: &Cloud) -> Duration {
    cloud.tunnels.settings.answer()
}

/// Sends a request to one device and passes its answer on, for as long as the caller has the right to it.
async fn one(
    cloud: &SharedCloud,
    identity: &Identity,
    device: &DeviceTarget,
    device_request: &DeviceRequest,
) -> Answer {
    match send(&cloud.tunnels, device, device_request, patience(cloud)).await {
        Ok(answer) => {
            let answer = answer::passed_on(answer, &device_request.method);
            if answer.body().size_hint().exact().is_some() {
                return Ok(answer);
            }
            let need = match needed(device_request) {
                None => Need::Read(device.id),
                Some(action) => Need::Act(device.id, action),
            };
            let mut lease = Lease::new(cloud, identity, need);
            Ok(answer.map(|body| {
                let over = async move { lease.wait_for_end().await };
                Body::from_stream(body.into_data_stream().take_until(Box::pin(over)))
            }))
        }
        Err(DeviceError::Away) => Err(Refusal::Missing(NOBODY.to_owned())),
        Err(DeviceError::NotReached(why)) => Err(Refusal::Unavailable(why.to_string())),
        Err(error) => Err(Refusal::Unreached(error.to_string())),
    }
}

/// Sends a request to each device and lists the answers.
fn several(
    cloud: SharedCloud,
    devices: Vec<DeviceTarget>,
    device_request: DeviceRequest,
) -> Response {
    let answers = requests(cloud, devices, device_request).buffered(AT_A_TIME);
    let entries = answers.enumerate().map(|(at, device_answer)| {
        let separator = if at == 0 { '[' } else { ',' };
        format!("{separator}{}", answer::entry(device_answer.answer))
    });
    let end = stream::iter(["]".to_owned()]);
    let text = entries
        .chain(end)
        .map(|text| Ok::<_, std::convert::Infallible>(Bytes::from(text)));
    json_answer(StatusCode::MULTI_STATUS, Body::from_stream(text))
}

/// Returns a request to each device, one after the other; each results in an answer.
fn requests(
    cloud: SharedCloud,
    devices: Vec<DeviceTarget>,
    device_request: DeviceRequest,
) -> impl Stream<Item = impl Future<Output = DeviceAnswer>> {
    let begun = Instant::now();
    let turns = (0..).map(move |turn| begun + BETWEEN * turn);
    stream::iter(devices.into_iter().zip(turns))
        .then(|(device, turn)| async move {
            sleep_until(turn).await;
            device
        })
        .map(move |device| {
            let (cloud, device_request) = (cloud.clone(), device_request.clone());
            async move {
                DeviceAnswer {
                    device: device.id,
                    answer: whole_answer(&cloud, &device, &device_request).await,
                }
            }
        })
}

/// Sends a request to a device and reads the whole answer. Without a limit on the time until its end, a device that
/// begins an answer and does not end it would keep the answers of all others.
async fn whole_answer(
    cloud: &Cloud,
    device: &DeviceTarget,
    device_request: &DeviceRequest,
) -> Result<CollectedAnswer, String> {
    let patience = patience(cloud);
    let answer = async {
        match send(&cloud.tunnels, device, device_request, patience).await {
            Ok(answer) => answer::collect(answer).await,
            // It was connected a moment ago.
            Err(DeviceError::Away) => Err(DeviceError::Lost.to_string()),
            Err(error) => Err(error.to_string()),
        }
    };
    match timeout(patience, answer).await {
        Ok(answer) => answer,
        Err(_) => Err(DeviceError::TooLate(patience).to_string()),
    }
}
