//! What plugins are called for, and what they answer as gates (`wit/events.wit`).

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Something that has happened.
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

/// Why an update waits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Postponement {
    /// The plugin that postpones it.
    pub plugin: String,
    /// Its reason, for people.
    pub reason: String,
    /// When the device asks again.
    pub delay: Duration,
}

/// What the plugins find of a release.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum GateVerdict {
    /// All of them find it healthy, or there are none.
    Healthy,
    /// One of them does not find it healthy yet.
    NotYet {
        /// The plugin.
        plugin: String,
        /// Its reason, for people.
        reason: String,
        /// When the device asks again.
        delay: Duration,
    },
    /// One of them finds it unhealthy.
    Unhealthy {
        /// The plugin.
        plugin: String,
        /// Its reason, for people.
        reason: String,
    },
}
