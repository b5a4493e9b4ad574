//! Checks again tunnels whose keys may have been revoked without a notification.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use data::{DataError, SystemPurpose};
use sea_query::{Alias, Expr, ExprTrait, Query};
use tokio::time::sleep;

use super::device_connections::DeviceConnections;
use crate::clock::now;

/// Keys of one statement.
const AT_ONCE: usize = 1000;
/// Delay before a failed database access is tried again.
const AGAIN: Duration = Duration::from_secs(1);

/// Runs a check whenever one is requested, for as long as it is polled.
pub(super) async fn run(connections: Arc<DeviceConnections>) {
    loop {
        connections.recheck.notified().await;
        while let Err(error) = look(&connections).await {
            tracing::warn!("cannot check the keys of open tunnels, trying again: {error}");
            sleep(AGAIN).await;
        }
    }
}

async fn look(connections: &DeviceConnections) -> Result<(), DataError> {
    let tunnels = &connections.open;
    for keys in tunnels.keys().chunks(AT_ONCE) {
        let expiry = || Expr::col(Alias::new("expiry_date"));
        let good = Query::select()
            .column(Alias::new("key_hash"))
            .from(Alias::new("api_key"))
            .and_where(Expr::col(Alias::new("key_hash")).is_in(keys))
            .and_where(expiry().is_null().or(expiry().gt(now())))
            .take();
        let mut bad: HashSet<String> = keys.iter().cloned().collect();
        for row in connections
            .database
            .rows(&SystemPurpose::Credentials.statement(good))
            .await?
        {
            bad.remove(&row.some_text(0)?);
        }
        if !bad.is_empty() {
            tunnels.end_opened_by(&bad);
        }
    }
    Ok(())
}
