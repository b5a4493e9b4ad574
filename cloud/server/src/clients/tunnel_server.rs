//! `POST /services/vpn/client-connect` and `client-disconnect`: a tunnel server beside this cloud tells which devices
//! it holds (cloud behaviour 4.7). The tunnels of this cloud's own need none of it.

use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use data::{Sql, SystemPurpose};
use http::StatusCode;
use resources::Role;
use sea_query::{Alias, Expr, ExprTrait as _, Order, Query};
use serde::Deserialize;

use crate::answer::Refusal;
use crate::body;
use crate::cloud::{Shared, now};
use crate::device::is_uuid;

/// Devices of one request.
const MOST: usize = 10_000;
/// Devices of one statement.
const AT_ONCE: usize = 1000;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Told {
    /// Those that came or went.
    uuids: Vec<String>,
    /// The number of the tunnel server's row of `service_instance`.
    service_id: i64,
}

/// Which devices came.
pub(crate) async fn connected(
    State(cloud): State<Shared>,
    request: Request,
) -> Result<Response, Refusal> {
    // Whatever held it before, the last one to say so does.
    let came = |now: i64, instance: i64| {
        SystemPurpose::Presence.sql(
            "UPDATE device SET is_connected_to_vpn = TRUE, is_online = TRUE, last_vpn_event = ?, \
             last_connectivity_event = ?, modified_at = ?, is_managed_by__service_instance = ? WHERE id IN (?)",
        )
        .with(now)
        .with(now)
        .with(now)
        .with(instance)
    };
    write(&cloud, request, came).await
}

/// Which devices went, of those that are (still) this server's.
pub(crate) async fn disconnected(
    State(cloud): State<Shared>,
    request: Request,
) -> Result<Response, Refusal> {
    let went = |now: i64, instance: i64| {
        SystemPurpose::Presence.sql(
            "UPDATE device SET is_connected_to_vpn = FALSE, is_online = FALSE, last_vpn_event = ?, \
             last_connectivity_event = ?, modified_at = ?, is_managed_by__service_instance = NULL \
             WHERE is_managed_by__service_instance = ? AND id IN (?)",
        )
        .with(now)
        .with(now)
        .with(now)
        .with(instance)
    };
    write(&cloud, request, went).await
}

async fn write(
    cloud: &Shared,
    request: Request,
    change: impl Fn(i64, i64) -> Sql,
) -> Result<Response, Refusal> {
    let (parts, body) = request.into_parts();
    let identity = cloud.admit(&parts).await?;
    if identity.role() != Role::TunnelServer {
        return Err(Refusal::Unauthorized);
    }
    let told: Told = body::typed(&parts.headers, body, cloud.configuration.limits.body).await?;
    if told.uuids.len() > MOST {
        return Err(Refusal::Wrong(format!("more than {MOST} devices at once")));
    }
    let now = now();
    let mut transaction = cloud.database.begin().await?;
    // It is there as long as it tells anything.
    let server = SystemPurpose::Presence.sql(
        "UPDATE service_instance SET last_heartbeat = now_ms() WHERE id = ? AND service_type = 'vpn'",
    );
    let server = server.with(told.service_id);
    if transaction.execute(&server).await? == 0 {
        return Err(Refusal::Wrong(format!(
            "`serviceId`: there is no tunnel server {}; make a `service_instance` first",
            told.service_id
        )));
    }
    // One of no device is passed over: it may just have been deleted.
    let uuids: Vec<&str> = told.uuids.iter().map(String::as_str).collect();
    let uuids: Vec<&str> = uuids.into_iter().filter(|uuid| is_uuid(uuid)).collect();
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
        let change = change(now, told.service_id).with_all(&devices);
        transaction.execute(&change).await?;
    }
    transaction.commit().await?;
    Ok(StatusCode::OK.into_response())
}
