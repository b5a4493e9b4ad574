//! What a device should run (cloud behaviour 4.2).
//!
//! A document is made by one statement and remembered, with its ETag, by the device. Whether it still holds is
//! one more small statement, which asks for the numbers that writes raise (`data::generation`): so the answer
//! is right in every replica, and a poll of a device that nothing changed for costs no more than that. Polls
//! that come at once share one.

mod document;
mod generation;
mod remembered;
mod rows;

use axum::body::Body;
use axum::extract::{Path, Request, State};
use axum::response::{IntoResponse, Response};
use data::sql;
use http::{HeaderMap, HeaderValue, StatusCode, header};
use resources::Action;

pub(crate) use remembered::States;
use remembered::{Remembered, tag};

use crate::answer::{Refusal, json};
use crate::cloud::{Cloud, Shared};
use crate::credential::Identity;
use crate::device::{Known, parameter};

/// `GET /device/v3/:uuid/state`
pub(crate) async fn current(
    State(cloud): State<Shared>,
    Path(uuid): Path<String>,
    request: Request,
) -> Result<Response, Refusal> {
    Ok(match polled(&cloud, &uuid, request).await? {
        Some((remembered, headers)) => remembered.answer(&headers),
        None => StatusCode::NOT_MODIFIED.into_response(),
    })
}

/// `GET /device/v2/:uuid/state`
pub(crate) async fn older(
    State(cloud): State<Shared>,
    Path(uuid): Path<String>,
    request: Request,
) -> Result<Response, Refusal> {
    let Some((_, headers)) = polled(&cloud, &uuid, request).await? else {
        return Ok(StatusCode::NOT_MODIFIED.into_response());
    };
    let rows = cloud.state_rows(&rows::of_device(&uuid)).await?;
    let Some(rows) = rows else {
        return Ok(StatusCode::NOT_MODIFIED.into_response());
    };
    let document = rows
        .older_document(&cloud.configuration.branding)
        .to_string();
    Ok(tagged(document, &headers))
}

/// What a poll begins with, in whichever version: the device's state, for a caller who may have it, and the
/// headers that it was asked with. None of a device that is gone: it is to keep what it has, whoever asks, since
/// anything else would have whole fleets ask again and again.
async fn polled(
    cloud: &Cloud,
    uuid: &str,
    request: Request,
) -> Result<Option<(Remembered, HeaderMap)>, Refusal> {
    let (parts, _) = request.into_parts();
    let identity = cloud.admit(&parts).await;
    let Some(remembered) = found(cloud, uuid).await? else {
        return match identity {
            Err(refusal @ (Refusal::TooMany(_) | Refusal::Fault(_) | Refusal::Unavailable(_))) => {
                Err(refusal)
            }
            _ => Ok(None),
        };
    };
    let identity = identity?;
    permitted(cloud, &identity, remembered.device).await?;
    note_poll(cloud, &identity, &remembered);
    Ok(Some((remembered, parts.headers)))
}

/// `GET /device/v3/fleet/:fleetUuid/state/?releaseUuid=<commit>`: for any device of a fleet. Whoever may read the fleet
/// alone may not read this: it holds the variables and settings of the fleet.
pub(crate) async fn of_fleet(
    State(cloud): State<Shared>,
    Path(uuid): Path<String>,
    request: Request,
) -> Result<Response, Refusal> {
    let (parts, _) = request.into_parts();
    let identity = cloud.admit(&parts).await?;
    let fleet = sql("SELECT id FROM application WHERE uuid = ?").with(uuid.as_str());
    let fleet = match cloud.database.row(&fleet).await? {
        Some(row) => row.id(0)?,
        None => return Err(Refusal::Unauthorized),
    };
    let setting = cloud.setting(&identity.caller);
    let action = Action::ReadTargetState;
    let select = data::query::permitted_action(&setting, "application", fleet, action)?;
    if cloud.database.row(&select).await?.is_none() {
        return Err(Refusal::Unauthorized);
    }
    let commit = parameter(&parts, "releaseUuid").filter(|commit| !commit.is_empty());
    let statement = match commit {
        None => rows::of_fleet(fleet),
        Some(commit) => {
            let release = sql(
                "SELECT id FROM release WHERE belongs_to__application = ? AND \"commit\" = ? \
                 AND status = 'success'",
            )
            .with(fleet)
            .with(commit);
            match cloud.database.row(&release).await? {
                Some(row) => rows::of_fleet_with(fleet, row.id(0)?),
                None => return Err(Refusal::Unauthorized),
            }
        }
    };
    let rows = cloud.state_rows(&statement).await?;
    let rows = rows.ok_or(Refusal::Unauthorized)?;
    let document = rows.document(&cloud.configuration.branding).to_string();
    Ok(tagged(document, &parts.headers))
}

/// The state of a device that is there, as it is now.
async fn found(cloud: &Cloud, uuid: &str) -> Result<Option<Remembered>, Refusal> {
    if !super::is_uuid(uuid) {
        return Ok(None);
    }
    if let Some(remembered) = cloud.devices.states.get(uuid) {
        let (device, fleets) = (remembered.device.id, &remembered.depends);
        let generations = &cloud.devices.states.generations;
        match generations.of(&cloud.database, device, fleets).await? {
            None => {
                cloud.devices.states.forget(uuid);
                return Ok(None);
            }
            Some(generation) if generation == remembered.generation => {
                return Ok(Some(remembered));
            }
            Some(_) => {}
        }
    }
    let rows = cloud.state_rows(&rows::of_device(uuid)).await?;
    let Some(rows) = rows else { return Ok(None) };
    let (Some(id), Some(actor)) = (rows.device, rows.actor) else {
        return Ok(None);
    };
    let branding = &cloud.configuration.branding;
    let document = rows.document(branding).to_string();
    let remembered = Remembered {
        device: Known { id, actor },
        depends: rows.apps.values().map(|app| app.id).collect(),
        generation: rows.generation,
        poll: rows.poll_interval(branding),
        tag: tag(&document),
        document: document.into(),
    };
    cloud.devices.states.keep(uuid, &remembered);
    Ok(Some(remembered))
}

/// Whether the caller may read what the device is to run, with the variables that it holds.
async fn permitted(cloud: &Cloud, identity: &Identity, device: Known) -> Result<(), Refusal> {
    if device.is_own_key(identity) {
        return Ok(());
    }
    let Some(actor) = identity.actor() else {
        return Err(Refusal::Unauthorized);
    };
    if cloud.devices.states.is_refused(device.id, actor) {
        return Err(Refusal::Unauthorized);
    }
    let action = Action::ReadTargetState;
    match cloud.may_act(identity, device, action).await? {
        true => Ok(()),
        false => {
            cloud.devices.states.refuse(device.id, actor);
            Err(Refusal::Unauthorized)
        }
    }
}

/// A device that asks for its state lives.
fn note_poll(cloud: &Cloud, identity: &Identity, remembered: &Remembered) {
    if remembered.device.is_own_key(identity) {
        let Remembered {
            device,
            poll,
            generation,
            ..
        } = remembered;
        let heartbeats = &cloud.devices.heartbeats;
        heartbeats.note(device.id, *poll, *generation);
    }
}

impl Remembered {
    fn answer(&self, headers: &HeaderMap) -> Response {
        answer(self.document.clone(), &self.tag, headers)
    }
}

fn tagged(document: String, headers: &HeaderMap) -> Response {
    let tag = tag(&document);
    answer(document, &tag, headers)
}

/// A document with its ETag; 304 where the device has it.
fn answer(document: impl Into<Body>, tag: &HeaderValue, headers: &HeaderMap) -> Response {
    let known = headers
        .get_all(header::IF_NONE_MATCH)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .any(|value| value.trim() == "*" || value.trim().as_bytes() == tag.as_bytes());
    let mut response = match known {
        true => StatusCode::NOT_MODIFIED.into_response(),
        false => json(StatusCode::OK, document),
    };
    response.headers_mut().insert(header::ETAG, tag.clone());
    response
}
