//! `POST /services/vpn/client-connect` and `client-disconnect`: an external tunnel server reports which devices it
//! holds (docs/spec/cloud.md#tunnel-servers). The cloud's own tunnels do not use these.

use axum::extract::{Request, State};
use axum::response::IntoResponse as _;
use cloud_core::answer::{Answer, Refusal};
use cloud_core::body;
use cloud_core::clock::now;
use cloud_core::cloud::SharedCloud;
use cloud_core::device::is_uuid;
use data::SystemPurpose;
use http::StatusCode;
use resources::Role;
use sea_query::{Alias, Expr, ExprTrait as _, Order, Query};
use serde::Deserialize;

/// Maximum number of devices in one request.
const MOST: usize = 10_000;
/// Devices of one statement.
const AT_ONCE: usize = 1000;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ConnectionChange {
    /// The devices that connected or disconnected.
    uuids: Vec<String>,
    /// The number of the tunnel server's row of `service_instance`.
    service_id: i64,
}

/// Handles connected devices.
pub(crate) async fn connected(State(cloud): State<SharedCloud>, request: Request) -> Answer {
    // Whatever held the device before, the last one to report it holds it.
    let came = "UPDATE device SET is_connected_to_vpn = TRUE, is_online = TRUE, last_vpn_event = ?, \
                last_connectivity_event = ?, modified_at = ?, is_managed_by__service_instance = ? WHERE id IN (?)";
    write(&cloud, request, came).await
}

/// Handles disconnected devices, if this server (still) holds them.
pub(crate) async fn disconnected(State(cloud): State<SharedCloud>, request: Request) -> Answer {
    let went = "UPDATE device SET is_connected_to_vpn = FALSE, is_online = FALSE, last_vpn_event = ?, \
                last_connectivity_event = ?, modified_at = ?, is_managed_by__service_instance = NULL \
                WHERE is_managed_by__service_instance = ? AND id IN (?)";
    write(&cloud, request, went).await
}

/// `update` has parameters for the time (three times), the number of the tunnel server, and the devices.
async fn write(cloud: &SharedCloud, request: Request, update: &'static str) -> Answer {
    let (parts, body) = request.into_parts();
    let identity = cloud.auth.admit(&parts).await?;
    if identity.role() != Role::TunnelServer {
        return Err(Refusal::Unauthorized);
    }
    let change: ConnectionChange =
        body::typed(&parts.headers, body, cloud.configuration.limits.body).await?;
    if change.uuids.len() > MOST {
        return Err(Refusal::Wrong(format!("more than {MOST} devices at once")));
    }
    let now = now();
    let mut transaction = cloud.database.begin().await?;
    // A report shows that the server is alive.
    let server = SystemPurpose::Presence.sql(
        "UPDATE service_instance SET last_heartbeat = now_ms() WHERE id = ? AND service_type = 'vpn'",
    );
    let server = server.with(change.service_id);
    if transaction.execute(&server).await? == 0 {
        return Err(Refusal::Wrong(format!(
            "`serviceId`: there is no tunnel server {}; create a `service_instance` first",
            change.service_id
        )));
    }
    // Unknown uuids are skipped: the device may just have been deleted.
    let uuids = change.uuids.iter().map(String::as_str);
    let uuids: Vec<&str> = uuids.filter(|uuid| is_uuid(uuid)).collect();
    for some in uuids.chunks(AT_ONCE) {
        let mut select = Query::select();
        select
            .column(Alias::new("id"))
            .from(Alias::new("device"))
            .and_where(Expr::col(Alias::new("uuid")).is_in(some.iter().copied()))
            .order_by(Alias::new("id"), Order::Asc);
        let devices = transaction
            .ids(&SystemPurpose::Presence.statement(select))
            .await?;
        let update = SystemPurpose::Presence.sql(update);
        let update = update.with(now).with(now).with(now);
        let update = update.with(change.service_id).with_all(&devices);
        transaction.execute(&update).await?;
    }
    transaction.commit().await?;
    Ok(StatusCode::OK.into_response())
}
