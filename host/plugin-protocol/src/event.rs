//! Events that the device sends to plugins, and their answers (`wit/events.wit` contains the guarantees).

use plugin_manifest::EventKind;
use serde::{Deserialize, Serialize};

/// Something that has happened, or a question to the plugin.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum PluginEvent {
    /// The supervisor has started, or the plugin was installed. The value says whether this is the first start since
    /// boot.
    Start(bool),
    /// The schedule of this name is due.
    Schedule(String),
    /// The states of services have changed.
    Services(Vec<ServiceChange>),
    /// The device's progress towards its target.
    Target(TargetProgress),
    /// Whether the device reaches its cloud.
    Connection(bool),
    /// May this app be disturbed now?
    UpdateGate(PendingUpdate),
    /// Is this release healthy?
    HealthGate(InstalledRelease),
}

impl PluginEvent {
    /// Returns the kind of event that must be granted to the plugin to receive this one.
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
    /// A status as in `GET /v2/state/status`; `None` once the service is gone completely.
    pub status: Option<String>,
    /// The previous status; `None` if the service did not exist.
    pub before: Option<String>,
}

/// The device's progress towards its target.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum TargetProgress {
    /// It has begun to apply the target.
    Applying,
    /// Everything matches the target.
    Reached,
    /// It has stopped, and not everything matches the target.
    Stopped,
}

/// An update of an app that has not disturbed any service yet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PendingUpdate {
    /// The app's number.
    pub app_id: u64,
    /// 32 hexadecimal digits.
    pub app_uuid: String,
    /// The services that would be disturbed.
    pub services: Vec<String>,
    /// The running release, if all of it is running.
    pub running_commit: Option<String>,
    /// The release named in the target.
    pub target_commit: Option<String>,
}

/// A release that was installed a short while ago: all its services are running and pass their health checks.
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
    /// Not healthy, and waiting is of no use. Only valid as an answer to [`PluginEvent::HealthGate`].
    Refuse {
        /// Why, for people.
        reason: String,
    },
}
