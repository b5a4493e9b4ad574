//! The target state of a device (docs/spec/cloud.md#device-state).
//!
//! A document is created by one statement and cached, with its ETag, by device. One more small statement checks whether
//! it is still valid, by reading the numbers that writes increase (`data::generation`). So the answer is correct in
//! every replica, and a poll of an unchanged device costs only that statement. Simultaneous polls share one.

pub(super) mod cache;
mod document;
pub(crate) mod generation;
mod rows;
mod statement;

use axum::extract::{Path, Request, State};
use axum::response::IntoResponse as _;
use cloud_core::answer::{Answer, Refusal};
use cloud_core::cloud::Cloud;
use cloud_core::credential::Identity;
use cloud_core::device::{DeviceRef, is_uuid};
use data::{RowRight, SystemPurpose};
use http::{HeaderMap, StatusCode};
use resources::{Action, Role};

use cache::CachedState;
use rows::{Rows, SecretValues};

use crate::device::parameter;
use crate::etag::{tagged, with_etag};
use crate::state::{Server, ServerState};

/// `GET /device/v3/:uuid/state`
pub(crate) async fn current(
    State(server): State<ServerState>,
    Path(uuid): Path<String>,
    request: Request,
) -> Answer {
    let Some(poll) = polled(&server, &uuid, request).await? else {
        return Ok(StatusCode::NOT_MODIFIED.into_response());
    };
    let cloud = &server.cloud;
    let DevicePoll {
        remembered,
        right,
        secret_values,
        headers,
    } = poll;
    if secret_values == SecretValues::Shown || !remembered.has_secrets {
        let document = remembered.document(&right).ok_or(Refusal::Unauthorized)?;
        return Ok(with_etag(document, &remembered.tag, &headers));
    }
    // People read it only occasionally. The ETag is that of the document shown to them: the ETag of the device's
    // document would reveal whether a guess at the secret was right.
    let statement = statement::select_permitted_device(&right);
    Ok(match Rows::read(cloud, &statement, secret_values).await? {
        Some(rows) => {
            let document = rows.document(&cloud.configuration.branding).to_string();
            tagged(document, &headers)
        }
        None => StatusCode::NOT_MODIFIED.into_response(),
    })
}

/// `GET /device/v2/:uuid/state`
pub(crate) async fn get_v2_state(
    State(server): State<ServerState>,
    Path(uuid): Path<String>,
    request: Request,
) -> Answer {
    let Some(poll) = polled(&server, &uuid, request).await? else {
        return Ok(StatusCode::NOT_MODIFIED.into_response());
    };
    let cloud = &server.cloud;
    let statement = statement::select_permitted_device(&poll.right);
    Ok(
        match Rows::read(cloud, &statement, poll.secret_values).await? {
            Some(rows) => {
                let document = rows.v2_document(&cloud.configuration.branding);
                tagged(document.to_string(), &poll.headers)
            }
            None => StatusCode::NOT_MODIFIED.into_response(),
        },
    )
}

/// A permitted request for the state of a device.
struct DevicePoll {
    remembered: CachedState,
    right: RowRight,
    secret_values: SecretValues,
    headers: HeaderMap,
}

/// Begins a poll of any version. Returns none for a deleted device, whoever the caller is: it should keep what it has,
/// since any other answer would make whole fleets retry again and again.
async fn polled(
    server: &Server,
    uuid: &str,
    request: Request,
) -> Result<Option<DevicePoll>, Refusal> {
    let cloud = &*server.cloud;
    let (parts, _) = request.into_parts();
    let identity = cloud.auth.admit(&parts).await;
    let Some(remembered) = found(server, uuid).await? else {
        return match identity {
            Err(refusal @ (Refusal::TooMany(_) | Refusal::Fault(_) | Refusal::Unavailable(_))) => {
                Err(refusal)
            }
            _ => Ok(None),
        };
    };
    let identity = identity?;
    let right = permitted(cloud, &identity, remembered.device).await?;
    note_poll(server, &identity, &remembered);
    Ok(Some(DevicePoll {
        secret_values: if remembered.device.is_own_key(&identity) {
            SecretValues::Shown
        } else {
            SecretValues::Hidden
        },
        remembered,
        right,
        headers: parts.headers,
    }))
}

/// `GET /device/v3/fleet/:fleetUuid/state/?releaseUuid=<commit>`: the state for any device of a fleet. The right to
/// read the fleet is not enough for this, because it contains the variables and settings of the fleet. Secrets are
/// shown only to the fleet's devices.
pub(crate) async fn get_fleet_state(
    State(server): State<ServerState>,
    Path(uuid): Path<String>,
    request: Request,
) -> Answer {
    let cloud = &*server.cloud;
    let (parts, _) = request.into_parts();
    let identity = cloud.auth.admit(&parts).await?;
    let fleet = SystemPurpose::Lookup
        .sql("SELECT id FROM application WHERE uuid = ?")
        .with(uuid.as_str());
    let fleet = cloud.database.id(&fleet).await?;
    let fleet = fleet.ok_or(Refusal::Unauthorized)?;
    let action = Action::ReadTargetState;
    let right = cloud.right(&identity.caller, "application", fleet, action);
    let right = right.await?.ok_or(Refusal::Unauthorized)?;
    let commit = parameter(&parts, "releaseUuid").filter(|commit| !commit.is_empty());
    let statement = match commit {
        None => statement::select_fleet(&right),
        Some(commit) => {
            let release = right.sql(
                "SELECT id FROM release WHERE belongs_to__application = ? AND \"commit\" = ? \
                 AND status = 'success'",
            );
            let release = cloud.database.id(&release.with(commit)).await?;
            let release = release.ok_or(Refusal::Unauthorized)?;
            statement::select_fleet_with_release(&right, release)
        }
    };
    let secret_values = match identity.caller.role() {
        Some(Role::DeviceKey) => SecretValues::Shown,
        _ => SecretValues::Hidden,
    };
    let rows = Rows::read(cloud, &statement, secret_values).await?;
    let rows = rows.ok_or(Refusal::Unauthorized)?;
    let document = rows.document(&cloud.configuration.branding).to_string();
    Ok(tagged(document, &parts.headers))
}

/// Returns the current state of an existing device.
async fn found(server: &Server, uuid: &str) -> Result<Option<CachedState>, Refusal> {
    if !is_uuid(uuid) {
        return Ok(None);
    }
    let cloud = &server.cloud;
    if let Some(remembered) = server.devices.states.get(uuid) {
        let (device, fleets) = (remembered.device.id, &remembered.depends);
        let generations = &server.devices.states.generations;
        match generations
            .for_device(&cloud.database, device, fleets)
            .await?
        {
            None => {
                server.devices.states.forget(uuid);
                return Ok(None);
            }
            Some(generation) if generation == remembered.generation => {
                return Ok(Some(remembered));
            }
            Some(_) => {}
        }
    }
    let statement = statement::select_device(uuid);
    let rows = Rows::read(cloud, &statement, SecretValues::Shown).await?;
    let Some(rows) = rows else { return Ok(None) };
    let (Some(id), Some(actor)) = (rows.device, rows.actor) else {
        return Ok(None);
    };
    let branding = &cloud.configuration.branding;
    let remembered = CachedState::new(DeviceRef { id, actor }, &rows, branding);
    server.devices.states.keep(uuid, &remembered);
    Ok(Some(remembered))
}

/// Returns the right of the caller to read the target state of the device, with its variables.
async fn permitted(
    cloud: &Cloud,
    identity: &Identity,
    device: DeviceRef,
) -> Result<RowRight, Refusal> {
    if identity.actor().is_none() {
        return Err(Refusal::Unauthorized);
    }
    // Checked each time: a newly granted right takes effect immediately.
    let right = cloud.right_on_device(identity, device, Action::ReadTargetState);
    right.await?.ok_or(Refusal::Unauthorized)
}

/// Notes that a device that polls is alive.
fn note_poll(server: &Server, identity: &Identity, remembered: &CachedState) {
    if remembered.device.is_own_key(identity) {
        let CachedState {
            device,
            poll,
            generation,
            ..
        } = remembered;
        let heartbeats = &server.devices.heartbeats;
        heartbeats.note(device.id, *poll, *generation);
    }
}
