//! Devices that hold a tunnel: who may open one, what the cloud reports about it, and the requests through it
//! (docs/spec/cloud.md#supervisor-proxy, docs/spec/cloud.md#device-online). The devices are fakes behind the real end
//! of the tunnel.

pub(crate) mod proxy;
pub(crate) mod push;
mod tunnel;

use std::time::{Duration, Instant};

use axum::Router;
use serde_json::Value;

use crate::harness::{ApiCaller, PATIENCE};

/// Waits until the condition holds.
pub(crate) async fn until<T>(what: &str, mut look: impl AsyncFnMut() -> Option<T>) -> T {
    let begun = Instant::now();
    loop {
        if let Some(found) = look().await {
            return found;
        }
        assert!(
            begun.elapsed() < PATIENCE,
            "not within {PATIENCE:?}: {what}"
        );
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// Creates a supervisor that answers nothing.
pub(crate) fn silent() -> Router {
    Router::new()
}

/// Returns a device's connection as the data API reports it.
async fn connection(ann: &ApiCaller<'_>, id: i64) -> Value {
    let path = format!(
        "/v7/device({id})?$select=is_connected_to_vpn,is_online,last_vpn_event,last_connectivity_event"
    );
    ann.rows(&path).await.remove(0)
}

/// Waits until the data API reports that the device is connected, or that it is not.
pub(crate) async fn until_connected(ann: &ApiCaller<'_>, id: i64, connected: bool) -> Value {
    until("the state of the connection", async || {
        let row = connection(ann, id).await;
        assert_eq!(row["is_online"], row["is_connected_to_vpn"], "{row}");
        (row["is_connected_to_vpn"] == connected).then_some(row)
    })
    .await
}
