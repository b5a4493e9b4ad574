//! The life of a tunnel, from its first byte to its last.

use std::pin::pin;
use std::time::Duration;

use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tracing::Instrument as _;
use tunnel::{CloseReason, End};

use super::open::Opener;
use crate::cloud::{Cloud, SharedCloud};

/// How long a device may take between the answer and the first bytes of the tunnel.
const SWITCH: Duration = Duration::from_secs(20);
/// How long requests in progress may continue when this replica ends. If a tunnel ends for another reason, they are cut
/// off.
const GRACE: Duration = Duration::from_secs(5);
/// How long a device may take to close its end after the final message.
const LAST_WORD: Duration = Duration::from_secs(2);

/// Carries a tunnel that was opened at this time (of the database), as soon as its connection has been upgraded.
pub fn begin(cloud: &SharedCloud, opener: Opener, since: i64, switched: OnUpgrade) {
    let span = tracing::info_span!(parent: None, "device_connection", device = opener.device);
    let carried = carry(cloud.clone(), opener, since, switched);
    cloud.tunnels.open.carrying.spawn(carried.instrument(span));
}

async fn carry(cloud: SharedCloud, opener: Opener, since: i64, switched: OnUpgrade) {
    let device = opener.device;
    let pings = cloud.tunnels.settings.pings();
    let begun = timeout(SWITCH, async {
        let connection = switched.await?;
        let (pipe, closer) = tunnel::over(TokioIo::new(connection), End::Cloud).await;
        let (client, connection) = tunnel::connect(pipe, pings).await?;
        Ok::<_, hyper::Error>((client, connection, closer))
    });
    let (client, mut connection, closer) = match begun.await {
        Ok(Ok(begun)) => begun,
        Ok(Err(error)) => {
            tracing::debug!(%error, "a tunnel broke before it began");
            return;
        }
        Err(_) => return,
    };
    let tunnels = &cloud.tunnels;
    let mut handle = tunnels.open.opened(&opener, since, client.clone());
    opened(&cloud, device, since);
    let ending = CancellationToken::new();
    let mut calls = pin!(cloud.bus.take_calls(device, client, ending.clone()));
    let reason = tokio::select! {
        ended = connection.ended() => {
            match ended {
                Ok(()) => tracing::debug!("a tunnel ended"),
                Err(error) => tracing::debug!(%error, "a tunnel broke"),
            }
            None
        }
        reason = &mut handle.until => reason.ok(),
        () = &mut calls => None,
    };
    tunnels.open.ended(&handle);
    tunnels.presence.changed(device);
    let Some(reason) = reason else { return };
    tracing::debug!(?reason, "a tunnel is ended");
    closer.set_reason(reason);
    if reason == CloseReason::GoingAway {
        // Without requests in progress, it ends at once.
        ending.cancel();
        let _ = timeout(GRACE, async { tokio::join!(calls, connection.ended()) }).await;
    }
    connection.cut().await;
    let _ = timeout(LAST_WORD, closer.close()).await;
}

fn opened(cloud: &Cloud, device: i64, since: i64) {
    tracing::debug!("a tunnel is open");
    cloud.bus.publish_arrival(device, since);
    cloud.tunnels.presence.changed(device);
    cloud.tunnels.push.arrived(device);
}
