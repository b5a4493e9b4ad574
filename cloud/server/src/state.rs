//! What the endpoints of the server work with.

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

/// The state of the router. Clones are the same one.
#[derive(Clone)]
pub(crate) struct ServerState(Arc<Server>);

/// What the endpoints of the server work with.
pub(crate) struct Server {
    /// What they share with the dashboard.
    pub(crate) cloud: SharedCloud,
    /// Limits how many requests of one caller use the database at a time.
    pub(crate) shares: Shares,
    pub(crate) database_probe: DatabaseProbe,
    pub(crate) long_answers: LongAnswers,
    /// Signs tokens for the registry of images.
    pub(crate) registry: Registry,
    /// Tells the task that deletes images from the registry of new work.
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
    /// Waits until a caller may ask the database one thing more.
    ///
    /// # Errors
    /// 429 where what it asked before takes too long; 503 where that waits for a database that is away, which the
    /// caller is not the cause of.
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
