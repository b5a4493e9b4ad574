//! The events that plugins are called for, and the device's conclusions from the answers of gates (`wit/events.wit`).

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// An event on the device.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum PluginEvent {
    /// The supervisor has started, or the plugin was installed. The flag says whether it is the first start
    /// since the device booted.
    Start(bool),
    /// The schedule with this name is due.
    Schedule(String),
    /// The states of services have changed.
    Services(Vec<ServiceChange>),
    /// How far the device is with applying its target.
    Target(TargetProgress),
    /// Whether the device can reach its cloud.
    Connection(bool),
}

/// A change of a service's state. The words are those of `GET /v2/state/status`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServiceChange {
    /// The app's number.
    pub app_id: u64,
    /// The service's name.
    pub service: String,
    /// The present state; `None` if nothing is left of the service.
    pub status: Option<String>,
    /// The state when the plugin was last called; `None` if the service did not exist.
    pub before: Option<String>,
}

/// How far the device is with applying its target.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum TargetProgress {
    /// The device has begun to apply the target.
    Applying,
    /// Everything matches the target.
    Reached,
    /// The device has stopped applying the target, and not everything matches it.
    Stopped,
}

/// An update of an app that has not disturbed any service yet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PendingUpdate {
    /// The app's number.
    pub app_id: u64,
    /// The app's uuid: 32 hexadecimal digits.
    pub app_uuid: String,
    /// The services that would be stopped, restarted or removed.
    pub services: Vec<String>,
    /// The running release, if all of it is running.
    pub running_commit: Option<String>,
    /// The release that the target names; `None` if the app will be removed.
    pub target_commit: Option<String>,
}

/// A release that was installed a short while ago. All of its services are running, and those with a health check pass
/// it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct InstalledRelease {
    /// The app's number.
    pub app_id: u64,
    /// The app's uuid: 32 hexadecimal digits.
    pub app_uuid: String,
    /// The services of the release.
    pub services: Vec<String>,
    /// The release's commit.
    pub commit: String,
}

/// The reason why an update waits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Postponement {
    /// The plugin that postpones it.
    pub plugin: String,
    /// Its reason, for people.
    pub reason: String,
    /// The delay until the device asks again.
    pub delay: Duration,
}

/// The plugins' verdict on a release.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum GateVerdict {
    /// All of them consider it healthy, or there are none.
    Healthy,
    /// One of them does not consider it healthy yet.
    NotYet {
        /// The plugin.
        plugin: String,
        /// Its reason, for people.
        reason: String,
        /// The delay until the device asks again.
        delay: Duration,
    },
    /// One of them considers it unhealthy.
    Unhealthy {
        /// The plugin.
        plugin: String,
        /// Its reason, for people.
        reason: String,
    },
}
