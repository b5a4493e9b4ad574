//! What the server and the dashboard share.

use std::sync::Arc;

use data::query::{Caller, QueryContext};
use data::write::{Environment, Writer};
use data::{Database, Pool, SystemPurpose, Transaction};
use resources::Version;
use tokio_util::sync::CancellationToken;

use crate::auth::Auth;
use crate::bus::Bus;
use crate::clock::now;
use crate::configuration::Configuration;
use crate::logs::history::History;
use crate::password;
use crate::tunnels::DeviceConnections;

/// Clones are the same one.
pub type SharedCloud = Arc<Cloud>;

/// The running cloud, as far as both the endpoints of the server and the pages of the dashboard work with it.
pub struct Cloud {
    pub configuration: Configuration,
    pub database: Database,
    /// What writes go by.
    pub environment: Environment,
    /// Who may make a request, and how often.
    pub auth: Auth,
    /// Who waits for the hash of a password.
    pub passwords: password::HashQueue,
    /// What replicas tell each other.
    pub bus: Bus,
    /// The devices that are connected.
    pub tunnels: Arc<DeviceConnections>,
    /// The log lines of devices.
    pub logs: History,
    /// Names of the configuration variable that switches the tunnel off, the current one first.
    pub tunnel_variables: Vec<String>,
    /// Cancelled when the program is about to end.
    pub stop: CancellationToken,
}

impl Cloud {
    /// What a statement of the data API goes by, for this caller, in the current version.
    pub fn setting<'a>(&'a self, caller: &'a Caller) -> QueryContext<'a> {
        self.setting_of(caller, Version::V7)
    }

    /// The same in any version: its names, and how its answers look.
    pub fn setting_of<'a>(&'a self, caller: &'a Caller, version: Version) -> QueryContext<'a> {
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

    /// Writes rows of a transaction as this caller.
    pub fn writer<'a>(
        &'a self,
        transaction: &'a mut Transaction,
        caller: &'a Caller,
    ) -> Writer<'a> {
        Writer::new(transaction, self.setting(caller), &self.environment)
    }

    /// Writes rows of a transaction as the cloud itself.
    pub fn own_writer<'a>(
        &'a self,
        transaction: &'a mut Transaction,
        purpose: SystemPurpose,
    ) -> Writer<'a> {
        Writer::platform(purpose, transaction, &self.environment, now())
    }

    /// The database by the connections that are there for a caller.
    pub fn database_of(&self, caller: &Caller) -> Database {
        self.database.by(if caller.is_guest() {
            Pool::Guests
        } else {
            Pool::People
        })
    }
}
