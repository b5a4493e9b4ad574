//! The host that the supervisor runs on, as configuration says it is reached.

use std::sync::Arc;

use os::{ConfigJson, DBus, HostOs, Journal, Rehearsal};

use crate::configuration::{Configuration, HostActions};

/// What the parts of the supervisor ask of the host.
#[derive(Clone)]
pub(crate) struct Host {
    pub(crate) os: Arc<dyn HostOs>,
    pub(crate) config_json: ConfigJson,
    pub(crate) journal: Journal,
}

impl Host {
    /// Asks nothing of the host yet.
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

    /// Says in the log where the host is, and what is wrong with its `config.json`. A damaged one is no
    /// reason not to start: the device keeps its services, and has no identity until it is repaired.
    pub(crate) fn announce(&self) {
        tracing::info!(
            "actions on the host go {}; its `config.json` is `{}`",
            self.os.describe(),
            self.config_json.path().display()
        );
        if let Err(error) = self.config_json.read() {
            let cause = std::error::Error::source(&error).map(ToString::to_string);
            tracing::error!(cause, "{error}");
        }
    }
}
