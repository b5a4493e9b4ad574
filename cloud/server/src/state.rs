//! The state that the server's endpoints use.

use std::ops::Deref;
use std::sync::Arc;

use axum::extract::FromRef;
use cloud_core::answer::Refusal;
use cloud_core::charge::payer;
use cloud_core::cloud::SharedCloud;
use cloud_core::credential::Identity;
use http::request::Parts;

use crate::database_probe::DatabaseProbe;
use crate::device::devices::Devices;
use crate::long_answers::LongAnswers;
use crate::registry::Registry;
use crate::registry::garbage_signal::GarbageSignal;
use crate::shares::{Share, Shares};

/// The state of the router. Clones share one state.
#[derive(Clone)]
pub(crate) struct ServerState(Arc<Server>);

/// The state that the server's endpoints use.
pub(crate) struct Server {
    /// The part that they share with the dashboard.
    pub(crate) cloud: SharedCloud,
    /// Limits how many requests of one caller use the database at a time.
    pub(crate) shares: Shares,
    pub(crate) database_probe: DatabaseProbe,
    pub(crate) long_answers: LongAnswers,
    /// Signs tokens for the registry of images.
    pub(crate) registry: Registry,
    /// Notifies the task that deletes images from the registry of new work.
    pub(crate) garbage: GarbageSignal,
    pub(crate) devices: Devices,
}

impl From<Server> for ServerState {
    fn from(server: Server) -> Self {
        ServerState(Arc::new(server))
    }
}

impl Deref for ServerState {
    type Target = Server;

    fn deref(&self) -> &Server {
        &self.0
    }
}

impl FromRef<ServerState> for SharedCloud {
    fn from_ref(state: &ServerState) -> Self {
        state.cloud.clone()
    }
}

impl Server {
    /// Waits until a caller may use the database for another request.
    ///
    /// # Errors
    /// 429 if the caller's earlier requests take too long; 503 if they wait for a database that cannot be reached,
    /// which is not the caller's fault.
    pub(crate) async fn share(&self, identity: &Identity, parts: &Parts) -> Result<Share, Refusal> {
        let most = self.cloud.configuration.pools.share(identity.role());
        let payer = payer(identity, parts);
        if let Some(share) = self.shares.share(payer, most).await {
            return Ok(share);
        }
        if self.database_probe.answers(&self.cloud.database).await {
            Err(Refusal::TooMany(1))
        } else {
            Err(Refusal::database_away())
        }
    }
}
