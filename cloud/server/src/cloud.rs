//! What every request works with.

use std::sync::Arc;

use data::query::{Caller, QueryContext};
use data::write::Environment;
use data::{Database, Pool};
use http::request::Parts;
use resources::Version;

use crate::answer::Refusal;
use crate::auth::Auth;
use crate::bus::Bus;
use crate::charge::payer;
use crate::clock::now;
use crate::configuration::Configuration;
use crate::credential::Identity;
use crate::dashboard::live_pages::LivePages;
use crate::database_probe::DatabaseProbe;
use crate::device::devices::Devices;
use crate::long_answers::LongAnswers;
use crate::password;
use crate::registry::Registry;
use crate::registry::garbage_signal::GarbageSignal;
use crate::shares::{Share, Shares};
use crate::tunnels::DeviceConnections;

/// What every request works with. Clones are the same one.
pub(crate) type SharedCloud = Arc<Cloud>;

/// The running cloud.
pub(crate) struct Cloud {
    pub(crate) configuration: Configuration,
    pub(crate) database: Database,
    /// What writes go by.
    pub(crate) environment: Environment,
    /// Who may make a request, and how often.
    pub(crate) auth: Auth,
    /// Who is at the database.
    pub(crate) shares: Shares,
    /// Who waits for the hash of a password.
    pub(crate) passwords: password::HashQueue,
    pub(crate) long_answers: LongAnswers,
    /// What replicas tell each other.
    pub(crate) bus: Bus,
    /// The devices that are connected.
    pub(crate) tunnels: Arc<DeviceConnections>,
    /// Who signs for the registry of images.
    pub(crate) registry: Registry,
    /// What the registry is to delete.
    pub(crate) garbage: GarbageSignal,
    pub(crate) devices: Devices,
    pub(crate) database_probe: DatabaseProbe,
    /// The pages that are open.
    pub(crate) live: LivePages,
    /// Names of the configuration variable that switches the tunnel off, the current one first.
    pub(crate) tunnel_variables: Vec<String>,
}

impl Cloud {
    /// What a statement of the data API goes by, for this caller, in the current version.
    pub(crate) fn setting<'a>(&'a self, caller: &'a Caller) -> QueryContext<'a> {
        self.setting_of(caller, Version::V7)
    }

    /// The same in any version: its names, and how its answers look.
    pub(crate) fn setting_of<'a>(
        &'a self,
        caller: &'a Caller,
        version: Version,
    ) -> QueryContext<'a> {
        let shape = version.shape();
        QueryContext {
            model: version.model(),
            dialect: self.database.dialect(),
            caller,
            now: now(),
            addresses: version.path(),
            always_addressed: shape.addressed,
            lenient: shape.lenient,
            tunnel_variables: &self.tunnel_variables,
            origin: "",
        }
    }

    /// The database by the connections that are there for a caller.
    pub(crate) fn database_of(&self, caller: &Caller) -> Database {
        self.database.by(if caller.is_guest() {
            Pool::Guests
        } else {
            Pool::People
        })
    }

    /// Waits until a caller may ask the database one thing more.
    ///
    /// # Errors
    /// 429 where what it asked before takes too long; 503 where that waits for a database that is away, which the
    /// caller is not the cause of.
    pub(crate) async fn share(&self, identity: &Identity, parts: &Parts) -> Result<Share, Refusal> {
        let most = self.configuration.pools.share(identity.role());
        let payer = payer(identity, parts);
        if let Some(share) = self.shares.share(payer, most).await {
            return Ok(share);
        }
        if self.database_probe.answers(&self.database).await {
            Err(Refusal::TooMany(1))
        } else {
            Err(Refusal::database_away())
        }
    }
}
