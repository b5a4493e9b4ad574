//! `POST /device/v2/:uuid/logs`: a few lines in one request.

use std::net::IpAddr;

use axum::extract::{Path, Request, State};
use cloud_core::answer::{Answer, Refusal};
use cloud_core::body;
use cloud_core::charge::address;
use cloud_core::clock::now;
use cloud_core::credential::Identity;
use cloud_core::device::DeviceRef;
use cloud_core::logs::line::{LogLine, ParsedLine};
use cloud_core::logs::span::AppendError;
use governor::clock::{Clock, DefaultClock};
use http::request::Parts;
use resources::Action;
use serde_json::Value;

use super::{acknowledgement, gone};
use crate::state::{Server, ServerState};

/// Maximum number of lines in one request.
const MOST: usize = 10;

/// `POST /device/v2/:uuid/logs`
pub(crate) async fn batch(
    State(server): State<ServerState>,
    Path(uuid): Path<String>,
    request: Request,
) -> Answer {
    let cloud = &server.cloud;
    let (parts, body) = request.into_parts();
    let (device, _) = admitted(&server, &uuid, &parts).await?;
    server
        .devices
        .logs
        .batches
        .check_key(&device.id)
        .map_err(|until| {
            let wait = until.wait_time_from(DefaultClock::default().now());
            Refusal::TooMany(wait.as_secs() + 1)
        })?;
    let body = body::typed::<Value>(&parts.headers, body, cloud.configuration.limits.body).await?;
    let Value::Array(sent) = body else {
        return Err(Refusal::Wrong(
            "the body must be an array of lines".to_owned(),
        ));
    };
    if sent.len() > MOST {
        return Err(Refusal::Wrong(format!("more than {MOST} lines at once")));
    }
    let now = now();
    let mut lines = Vec::with_capacity(sent.len());
    for sent in &sent {
        match ParsedLine::read(sent, now) {
            ParsedLine::Line(line) => lines.push(line),
            ParsedLine::Other => {}
            ParsedLine::Nothing => {
                return Err(Refusal::Wrong(
                    "a line has a `message` and a `timestamp` in milliseconds".to_owned(),
                ));
            }
        }
    }
    keep(&server, device.id, lines, address(&parts.extensions)).await?;
    Ok(acknowledgement())
}

/// Stores lines of a device.
///
/// # Errors
/// 401, after a delay, if the device was deleted; 503 if the lines cannot be stored.
pub(super) async fn keep(
    server: &Server,
    device: i64,
    lines: Vec<LogLine>,
    from: IpAddr,
) -> Result<(), Refusal> {
    let cloud = &server.cloud;
    match cloud.logs.keep(&cloud.database, device, lines).await {
        Ok(()) => Ok(()),
        Err(AppendError::Gone) => Err(gone(server, from).await),
        Err(AppendError::Unavailable) => Err(unavailable()),
    }
}

/// Returns the device whose lines the request contains, and the caller.
///
/// # Errors
/// 401; after a delay if there is no such device (any more).
pub(super) async fn admitted(
    server: &Server,
    uuid: &str,
    parts: &Parts,
) -> Result<(DeviceRef, Identity), Refusal> {
    let cloud = &server.cloud;
    let identity = cloud.auth.admit(parts).await;
    let Some(device) = cloud.device(uuid).await? else {
        return Err(match identity {
            Err(Refusal::TooMany(seconds)) => Refusal::TooMany(seconds),
            _ => gone(server, address(&parts.extensions)).await,
        });
    };
    let identity = identity?;
    if !identity.is_key() {
        return Err(Refusal::Unauthorized);
    }
    let right = cloud.right_on_device(&identity, device, Action::WriteLog);
    right.await?.ok_or(Refusal::Unauthorized)?;
    Ok((device, identity))
}

pub(super) fn unavailable() -> Refusal {
    Refusal::Unavailable("log lines cannot be kept at the moment".to_owned())
}
