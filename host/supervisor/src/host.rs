//! Access to the host that the supervisor runs on, according to the configuration.

use std::sync::Arc;

use os::{ConfigJson, DBus, HostOs, Journal, Rehearsal};

use crate::configuration::Configuration;
use crate::settings::HostActions;

/// The interfaces to the host for the parts of the supervisor.
#[derive(Clone)]
pub(crate) struct Host {
    pub(crate) os: Arc<dyn HostOs>,
    pub(crate) config_json: ConfigJson,
    pub(crate) journal: Journal,
}

impl Host {
    /// Prepares the access; sends no request to the host yet.
    pub(crate) fn new(configuration: &Configuration) -> Self {
        let os: Arc<dyn HostOs> = match configuration.host_actions {
            HostActions::Dbus => Arc::new(DBus::connect(&configuration.dbus_address)),
            HostActions::Rehearse => Arc::new(Rehearsal::new(&configuration.host_root)),
        };
        Host {
            os,
            config_json: ConfigJson::open(&configuration.config_json),
            journal: Journal::new(&configuration.journal_program, &configuration.host_root),
        }
    }

    /// Logs the location of the host, and problems with its `config.json`. A damaged one does not
    /// prevent the start: the device keeps its services, and has no identity until it is repaired.
    pub(crate) fn announce(&self) {
        tracing::info!(
            path = %self.config_json.path().display(),
            "host actions: {}; `config.json`: `{}`",
            self.os.describe(),
            self.config_json.path().display()
        );
        if let Err(error) = self.config_json.read() {
            let cause = std::error::Error::source(&error).map(ToString::to_string);
            tracing::error!(cause, "{error}");
        }
    }
}
