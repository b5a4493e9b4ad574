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

/// A shared handle to one cloud.
pub type SharedCloud = Arc<Cloud>;

/// The running cloud: the part that both the server's endpoints and the dashboard's pages use.
pub struct Cloud {
    pub configuration: Configuration,
    pub database: Database,
    /// The environment of writes.
    pub environment: Environment,
    /// Identifies callers and limits their requests.
    pub auth: Auth,
    /// The queue for password hashes.
    pub passwords: password::HashQueue,
    /// Communication between replicas.
    pub bus: Bus,
    /// The devices that are connected.
    pub tunnels: Arc<DeviceConnections>,
    /// The log lines of devices.
    pub logs: History,
    /// Names of the configuration variable that disables the tunnel, the current one first.
    pub tunnel_variables: Vec<String>,
    /// Cancelled when the program is about to end.
    pub stop: CancellationToken,
}

impl Cloud {
    /// Returns the context of a data API statement for this caller, in the current version.
    pub fn setting<'a>(&'a self, caller: &'a Caller) -> QueryContext<'a> {
        self.setting_of(caller, Version::V7)
    }

    /// Returns the same for any version, which determines names and the form of answers.
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

    /// Returns a writer for rows of a transaction, as this caller.
    pub fn writer<'a>(
        &'a self,
        transaction: &'a mut Transaction,
        caller: &'a Caller,
    ) -> Writer<'a> {
        Writer::new(transaction, self.setting(caller), &self.environment)
    }

    /// Returns a writer for rows of a transaction, as the cloud itself.
    pub fn own_writer<'a>(
        &'a self,
        transaction: &'a mut Transaction,
        purpose: SystemPurpose,
    ) -> Writer<'a> {
        Writer::platform(purpose, transaction, &self.environment, now())
    }

    /// Returns the database, with the connection pool for this caller.
    pub fn database_of(&self, caller: &Caller) -> Database {
        self.database.by(if caller.is_guest() {
            Pool::Guests
        } else {
            Pool::People
        })
    }
}
