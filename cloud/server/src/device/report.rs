//! Reports of devices about themselves (docs/spec/cloud.md#device-report).
//!
//! ```text
//! body ── fields   values of the device's own fields, cut to their maximum length
//!      ├─ apps     its services, and the progress of updates
//!      └─ plugins  fields of its plugins (`plugin_fields`)
//! rows ── written  differences from the rows, written in one transaction
//! ```
//!
//! A report without differences writes nothing. If only measurements differ, they are written once a minute.

mod apps;
mod changes;
mod fields;
mod plugin_fields;
mod v2;

use std::net::IpAddr;

use axum::extract::{Path, Request, State};
use axum::response::IntoResponse as _;
use cloud_core::answer::{Answer, Refusal};
use cloud_core::body;
use cloud_core::charge::address;
use cloud_core::credential::Identity;
use data::Effect;
use http::StatusCode;
use resources::Method;
use serde_json::Value;

use crate::state::{Server, ServerState};

use apps::Apps;
use changes::Report;
use fields::ReportedFields;
use plugin_fields::PluginFields;

/// Maximum number of devices in one report.
const MOST: usize = 100;

/// `PATCH /device/v3/state`
pub(crate) async fn patch(State(server): State<ServerState>, request: Request) -> Answer {
    let cloud = &server.cloud;
    let (parts, body) = request.into_parts();
    let identity = cloud.auth.admit_key(&parts).await?;
    let from = address(&parts.extensions);
    let body = body::object(&parts.headers, body, cloud.configuration.limits.body).await?;
    if body.is_empty() {
        return Err(Refusal::Wrong("the body names no device".to_owned()));
    }
    if body.len() > MOST {
        return Err(Refusal::Wrong(format!("more than {MOST} devices at once")));
    }
    let mut reports = Vec::with_capacity(body.len());
    for (uuid, fields) in &body {
        let Value::Object(fields) = fields else {
            return Err(Refusal::Wrong(format!(
                "the report of `{uuid}` must be an object"
            )));
        };
        let apps = fields.get("apps").map(Apps::read).transpose()?;
        let plugin_fields = fields.get("plugin_fields").filter(|given| !given.is_null());
        let report = Report {
            fields: ReportedFields::read(fields)?,
            apps,
            running: None,
            plugin_fields: plugin_fields.map(PluginFields::read).transpose()?,
        };
        reports.push((uuid.as_str(), report));
    }
    take(&server, &identity, reports, from).await?;
    Ok(StatusCode::OK.into_response())
}

/// `PATCH /device/v2/:uuid/state`
pub(crate) async fn patch_v2(
    State(server): State<ServerState>,
    Path(uuid): Path<String>,
    request: Request,
) -> Answer {
    let cloud = &server.cloud;
    let (parts, body) = request.into_parts();
    // A deleted device should not retry; its key was deleted too.
    let identity = cloud.auth.admit(&parts).await;
    if let Ok(None) = cloud.device(&uuid).await {
        return match identity {
            Err(Refusal::TooMany(seconds)) => Err(Refusal::TooMany(seconds)),
            _ => Ok(StatusCode::OK.into_response()),
        };
    }
    let identity = identity?;
    if !identity.is_key() {
        return Err(Refusal::Unauthorized);
    }
    let from = address(&parts.extensions);
    let body = body::object(&parts.headers, body, cloud.configuration.limits.body).await?;
    let report = v2::read(&body)?;
    take(&server, &identity, vec![(&uuid, report)], from).await?;
    Ok(StatusCode::OK.into_response())
}

/// All devices are checked before any is written: if one is invalid, or the caller has no rights on it, the request is
/// refused.
async fn take(
    server: &Server,
    identity: &Identity,
    reports: Vec<(&str, Report)>,
    from: IpAddr,
) -> Result<(), Refusal> {
    let cloud = &*server.cloud;
    let mut changes = Vec::with_capacity(reports.len());
    for (uuid, report) in reports {
        let present = changes::StoredDevice::load(cloud, uuid).await?;
        let present = present.ok_or(Refusal::Unauthorized)?;
        let right = cloud.right_on_device(identity, present.device, Method::Update);
        right.await?.ok_or(Refusal::Unauthorized)?;
        let own = present.device.is_own_key(identity);
        let device = present.device.id;
        let changed = present.changed_by(server, report, from).await;
        if own && matches!(changed, Err(Refusal::Unauthorized)) {
            runs_what_is_not_there(server, device);
        }
        changes.push(changed?);
    }
    for change in changes {
        change.write(server).await?;
    }
    Ok(())
}

/// A device reports that it runs something that does not exist: perhaps the database was restored to a state before
/// that release. The device is notified to check its target state, long before its next poll.
fn runs_what_is_not_there(server: &Server, device: i64) {
    if server.devices.refused.is_due(device) {
        server.devices.refused.is_done(device);
        tracing::info!(
            device,
            "a report was refused (401): it names a release or an image that its fleet does not have; the \
             cloud notifies the device to fetch its target state"
        );
        server
            .cloud
            .bus
            .publish(&[Effect::DevicesChanged(vec![device])]);
    }
}
