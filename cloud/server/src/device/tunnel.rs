//! `GET /device/v3/:uuid/tunnel`: a device opens the connection on which the cloud sends requests to it.

use axum::extract::{Path, Request, State};
use axum::response::IntoResponse as _;
use cloud_core::answer::{Answer, Refusal};
use cloud_core::cloud::SharedCloud;
use cloud_core::credential::{carried, key_hash};
use cloud_core::device::DeviceRef;
use cloud_core::tunnels::Opener;
use cloud_core::tunnels::tunnel;
use data::SystemPurpose;
use http::{StatusCode, header};
use hyper::upgrade::OnUpgrade;
use resources::Action;

use crate::connections::Connection;

/// Switches the connection to a tunnel, for a caller with a key of the device.
pub(crate) async fn accept(
    State(cloud): State<SharedCloud>,
    Path(uuid): Path<String>,
    request: Request,
) -> Answer {
    let (mut parts, _) = request.into_parts();
    let identity = cloud.auth.admit(&parts).await?;
    let row = SystemPurpose::Lookup
        .sql("SELECT id, actor, now_ms() FROM device WHERE uuid = ?")
        .with(uuid);
    let row = cloud
        .database
        .row(&row)
        .await?
        .ok_or(Refusal::Unauthorized)?;
    // By the database's clock: the replicas' own clocks could not tell which of two tunnels at two replicas is older.
    let (device, actor, since) = (row.id(0)?, row.id(1)?, row.id(2)?);
    let device_ref = DeviceRef { id: device, actor };
    let right = cloud.right_on_device(&identity, device_ref, Action::CloudLink);
    right.await?.ok_or(Refusal::Unauthorized)?;
    let protocol = &cloud.environment.branding.tunnel_protocol;
    let headers = match ::tunnel::accept(&parts.headers, protocol) {
        Ok(headers) => headers,
        Err(refused) if parts.headers.contains_key(header::UPGRADE) => {
            return Err(Refusal::Wrong(format!(
                "no tunnel can be opened: {refused}"
            )));
        }
        Err(_) => {
            let required = [
                (header::UPGRADE, "websocket"),
                (header::CONNECTION, "upgrade"),
            ];
            return Ok((StatusCode::UPGRADE_REQUIRED, required).into_response());
        }
    };
    let switched = parts.extensions.remove::<OnUpgrade>();
    let switched =
        switched.ok_or_else(|| Refusal::Wrong("tunnels are opened by HTTP/1.1".to_owned()))?;
    if let Some(connection) = parts.extensions.get::<Connection>() {
        connection.is_of_a_device();
    }
    let key = carried(&parts.headers, parts.uri.query()).unwrap_or_default();
    let opener = Opener {
        device,
        actor,
        key: key_hash(&key),
    };
    tunnel::begin(&cloud, opener, since, switched);
    Ok((StatusCode::SWITCHING_PROTOCOLS, headers).into_response())
}
