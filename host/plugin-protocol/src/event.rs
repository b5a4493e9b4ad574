//! What plugins are told of the device, and what they answer (`wit/events.wit`, where the promises are).

use plugin_manifest::EventKind;
use serde::{Deserialize, Serialize};

/// Something that has happened, or a question.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum PluginEvent {
    /// The supervisor has started, or the plugin was installed. Whether it is the first start of this boot.
    Start(bool),
    /// A schedule is due, by its name.
    Schedule(String),
    /// The states of services have changed.
    Services(Vec<ServiceChange>),
    /// How the device stands to its target.
    Target(TargetProgress),
    /// Whether the device reaches its cloud.
    Connection(bool),
    /// May this app be disturbed now?
    UpdateGate(PendingUpdate),
    /// Is this release healthy?
    HealthGate(InstalledRelease),
}

impl PluginEvent {
    /// What a plugin has to be granted to be called for it.
    #[must_use]
    pub fn kind(&self) -> EventKind {
        match self {
            PluginEvent::Start(_) => EventKind::Start,
            PluginEvent::Schedule(_) => EventKind::Schedule,
            PluginEvent::Services(_) => EventKind::Services,
            PluginEvent::Target(_) => EventKind::Target,
            PluginEvent::Connection(_) => EventKind::Connection,
            PluginEvent::UpdateGate(_) => EventKind::UpdateGate,
            PluginEvent::HealthGate(_) => EventKind::HealthGate,
        }
    }
}

/// The state of a service has changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServiceChange {
    /// The app's number.
    pub app_id: u64,
    /// The service's name.
    pub service: String,
    /// The words of `GET /v2/state/status`; none once nothing is left of the service.
    pub status: Option<String>,
    /// What it was before; none if there was nothing of it.
    pub before: Option<String>,
}

/// How the device stands to its target.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum TargetProgress {
    /// It has begun to apply it.
    Applying,
    /// Everything is as the target says.
    Reached,
    /// It has stopped, and not everything is as the target says.
    Stopped,
}

/// An update of an app, of which no service has been disturbed yet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PendingUpdate {
    /// The app's number.
    pub app_id: u64,
    /// 32 hexadecimal digits.
    pub app_uuid: String,
    /// The services that would be disturbed.
    pub services: Vec<String>,
    /// The release that runs, if one runs whole.
    pub running_commit: Option<String>,
    /// The release that the target names.
    pub target_commit: Option<String>,
}

/// A release that was installed a short while ago: all of its services run and pass their health checks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct InstalledRelease {
    /// The app's number.
    pub app_id: u64,
    /// 32 hexadecimal digits.
    pub app_uuid: String,
    /// The services of the release.
    pub services: Vec<String>,
    /// The release.
    pub commit: String,
}

/// The answer to a gate.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum EventAnswer {
    /// Nothing is in the way. To all other events this is the answer.
    GoOn,
    /// Not now.
    Postpone {
        /// Why, for people.
        reason: String,
        /// When to ask again.
        seconds: u32,
    },
    /// Not healthy, and no use in waiting. An answer to [`PluginEvent::HealthGate`] alone.
    Refuse {
        /// Why, for people.
        reason: String,
    },
}
