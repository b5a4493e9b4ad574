//! Access to a device's host: requests from its own programs, and from people.

use axum::extract::{Path, Request, State};
use axum::response::IntoResponse as _;
use cloud_core::answer::{Answer, Refusal};
use cloud_core::cloud::SharedCloud;
use data::SystemPurpose;
use http::{StatusCode, header};
use resources::{Action, Role};

/// `GET /auth/v1/public-keys/:username`: SSH keys of a user who may access the requesting device, one per line.
pub(crate) async fn public_keys(
    State(cloud): State<SharedCloud>,
    Path(username): Path<String>,
    request: Request,
) -> Answer {
    let (parts, _) = request.into_parts();
    let identity = cloud.auth.admit_key(&parts).await?;
    let (Role::DeviceKey, Some(actor)) = (identity.role(), identity.actor()) else {
        return Err(Refusal::Unauthorized);
    };
    // To this device, other users do not exist.
    let select = SystemPurpose::DeviceAccess.sql(
        "SELECT k.public_key FROM user__has__public_key AS k JOIN \"user\" AS u ON u.id = k.\"user\" \
         WHERE u.username = ? AND (u.is_disabled IS NULL OR u.is_disabled = FALSE) AND EXISTS (SELECT 1 FROM device AS d \
         JOIN application AS a ON a.id = d.belongs_to__application \
         JOIN organization_membership AS m ON m.is_member_of__organization = a.organization \
         WHERE d.actor = ? AND m.\"user\" = u.id) ORDER BY k.id",
    )
    .with(username.to_lowercase())
    .with(actor);
    let mut text = String::new();
    for key in cloud.database.texts(&select).await?.into_iter().flatten() {
        // A key is one line, whatever was stored.
        text.extend(key.lines().next());
        text.push('\n');
    }
    Ok(([(header::CONTENT_TYPE, "text/plain; charset=utf-8")], text).into_response())
}

/// `GET /access/v1/hostos/:uuid`: whether the holder of a credential may open a shell there.
pub(crate) async fn host(
    State(cloud): State<SharedCloud>,
    Path(uuid): Path<String>,
    request: Request,
) -> Answer {
    let (parts, _) = request.into_parts();
    let identity = cloud.auth.admit(&parts).await?;
    let device = cloud.device(&uuid).await?.ok_or(Refusal::Unauthorized)?;
    let right = cloud.right_on_device(&identity, device, Action::SshHost);
    match right.await? {
        Some(_) => Ok(StatusCode::OK.into_response()),
        None => Err(Refusal::Unauthorized),
    }
}

/// `GET /services/vpn/auth/:uuid`: tells a tunnel server whether a key belongs to that device.
pub(crate) async fn tunnel(
    State(cloud): State<SharedCloud>,
    Path(uuid): Path<String>,
    request: Request,
) -> Answer {
    let (parts, _) = request.into_parts();
    let identity = cloud.auth.admit_key(&parts).await?;
    let device = cloud.device(&uuid).await?.ok_or(Refusal::Unauthorized)?;
    if device.is_own_key(&identity) {
        Ok(StatusCode::OK.into_response())
    } else {
        Err(Refusal::Unauthorized)
    }
}
