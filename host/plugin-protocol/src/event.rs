//! Calls of plugins for events, and their answers (`wit/events.wit` contains the guarantees).

use plugin_manifest::EventKind;
use plugin_values::{InstalledRelease, PendingUpdate, PluginEvent};
use serde::{Deserialize, Serialize};

/// Something that has happened, or a question to the plugin.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum EventCall {
    /// Something has happened.
    Notice(PluginEvent),
    /// May this app be disturbed now?
    UpdateGate(PendingUpdate),
    /// Is this release healthy?
    HealthGate(InstalledRelease),
}

impl EventCall {
    /// Returns the kind of event that must be granted to the plugin to receive this one.
    #[must_use]
    pub fn kind(&self) -> EventKind {
        match self {
            EventCall::Notice(event) => kind_of_event(event),
            EventCall::UpdateGate(_) => EventKind::UpdateGate,
            EventCall::HealthGate(_) => EventKind::HealthGate,
        }
    }
}

/// Returns the kind of event that must be granted to the plugin to receive this one.
#[must_use]
pub fn kind_of_event(event: &PluginEvent) -> EventKind {
    match event {
        PluginEvent::Start(_) => EventKind::Start,
        PluginEvent::Schedule(_) => EventKind::Schedule,
        PluginEvent::Services(_) => EventKind::Services,
        PluginEvent::Target(_) => EventKind::Target,
        PluginEvent::Connection(_) => EventKind::Connection,
    }
}

/// The answer to a gate event.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum EventAnswer {
    /// The device may go on. This is the answer to all other events.
    GoOn,
    /// Not now.
    Postpone {
        /// Why, for people.
        reason: String,
        /// When to ask again.
        seconds: u32,
    },
    /// Not healthy, and waiting is of no use. Only valid as an answer to [`EventCall::HealthGate`].
    Refuse {
        /// Why, for people.
        reason: String,
    },
}
