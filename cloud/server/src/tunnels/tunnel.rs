//! `GET /device/v3/:uuid/tunnel`: a device opens the connection on which the cloud asks it.

use std::pin::pin;
use std::time::Duration;

use axum::extract::{Path, Request, State};
use axum::response::{IntoResponse, Response};
use data::SystemPurpose;
use http::{StatusCode, header};
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use resources::Action;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tunnel::{CloseReason, End};

use super::open::Opener;
use crate::answer::Refusal;
use crate::cloud::{Cloud, SharedCloud};
use crate::connections::Connection;
use crate::credential::{carried, key_hash};
use crate::device::DeviceRef;

/// How long a device may take from the answer to the first bytes of the tunnel.
const SWITCH: Duration = Duration::from_secs(20);
/// How long what is under way has when this replica ends. Nothing else that ends a tunnel waits for it.
const GRACE: Duration = Duration::from_secs(5);
/// How long a device may take to close its end, having heard the last word.
const LAST_WORD: Duration = Duration::from_secs(2);

/// Switches to the tunnel, for whoever holds a key of the device.
pub(crate) async fn accept(
    State(cloud): State<SharedCloud>,
    Path(uuid): Path<String>,
    request: Request,
) -> Result<Response, Refusal> {
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
    // By the database's clock: which of two tunnels at two replicas is the older, theirs could not tell.
    let (device, actor, since) = (row.id(0)?, row.id(1)?, row.id(2)?);
    let device_ref = DeviceRef { id: device, actor };
    let right = cloud.right_on_device(&identity, device_ref, Action::CloudLink);
    right.await?.ok_or(Refusal::Unauthorized)?;
    let protocol = &cloud.environment.branding.tunnel_protocol;
    let headers = match tunnel::accept(&parts.headers, protocol) {
        Ok(headers) => headers,
        Err(refused) if parts.headers.contains_key(header::UPGRADE) => {
            return Err(Refusal::Wrong(format!(
                "no tunnel can be opened: {refused}"
            )));
        }
        Err(_) => {
            let wanted = [
                (header::UPGRADE, "websocket"),
                (header::CONNECTION, "upgrade"),
            ];
            return Ok((StatusCode::UPGRADE_REQUIRED, wanted).into_response());
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
    let carried = carry(cloud.clone(), opener, since, switched);
    cloud.tunnels.open.carrying.spawn(carried);
    Ok((StatusCode::SWITCHING_PROTOCOLS, headers).into_response())
}

/// Carries a tunnel from its first byte to its last.
async fn carry(cloud: SharedCloud, opener: Opener, since: i64, switched: OnUpgrade) {
    let device = opener.device;
    let pings = cloud.tunnels.settings.pings();
    let begun = timeout(SWITCH, async {
        let connection = switched.await?;
        let (pipe, closer) = tunnel::over(TokioIo::new(connection), End::Cloud).await;
        let (ask, connection) = tunnel::connect(pipe, pings).await?;
        Ok::<_, hyper::Error>((ask, connection, closer))
    });
    let (ask, mut connection, closer) = match begun.await {
        Ok(Ok(begun)) => begun,
        Ok(Err(error)) => {
            tracing::debug!(device, %error, "a tunnel broke before it began");
            return;
        }
        Err(_) => return,
    };
    let tunnels = &cloud.tunnels;
    let mut handle = tunnels.open.opened(&opener, since, ask.clone());
    opened(&cloud, device, since);
    let ending = CancellationToken::new();
    let mut calls = pin!(cloud.bus.take_calls(device, ask, ending.clone()));
    let reason = tokio::select! {
        ended = connection.ended() => {
            match ended {
                Ok(()) => tracing::debug!(device, "a tunnel ended"),
                Err(error) => tracing::debug!(device, %error, "a tunnel broke"),
            }
            None
        }
        reason = &mut handle.until => reason.ok(),
        () = &mut calls => None,
    };
    tunnels.open.ended(&handle);
    tunnels.presence.changed(device);
    let Some(reason) = reason else { return };
    tracing::debug!(device, ?reason, "a tunnel is ended");
    closer.say(reason);
    if reason == CloseReason::GoingAway {
        // Without anything under way it is over at once.
        ending.cancel();
        let _ = timeout(GRACE, async { tokio::join!(calls, connection.ended()) }).await;
    }
    connection.cut().await;
    let _ = timeout(LAST_WORD, closer.close()).await;
}

fn opened(cloud: &Cloud, device: i64, since: i64) {
    tracing::debug!(device, "a tunnel is open");
    cloud.bus.publish_arrival(device, since);
    cloud.tunnels.presence.changed(device);
    cloud.tunnels.push.arrived(device);
}
