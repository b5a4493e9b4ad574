//! Events on the device, each with its data, as sent to readers of `GET /v3/events`.

use model::{
    AppId, Commit, ContainerId, ImageRef, OsVersion, PowerAction, ReleaseState, ServiceName,
    ServiceState,
};
use schemars::JsonSchema;
use serde::Serialize;
use strum::{Display, EnumDiscriminants, EnumString, VariantNames};

use crate::Moment;

/// The longest message of an event, in bytes.
const MAX_MESSAGE: usize = 1024;

/// Who may receive an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Audience {
    /// Anybody with a key.
    Everyone,
    /// Anybody who may see this app.
    App(AppId),
    /// Only the holder of the device's own key.
    Owner,
}

/// Something that has happened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema, EnumDiscriminants)]
#[serde(tag = "type", content = "data", rename_all = "kebab-case")]
#[schemars(rename = "DeviceEvent")]
#[strum_discriminants(
    name(EventType),
    doc = "The type of an event, in the order in which the documentation lists them, by the name that clients use.",
    derive(PartialOrd, Ord, Display, EnumString, VariantNames),
    strum(serialize_all = "kebab-case")
)]
pub enum Event {
    /// The state of a service has changed.
    Service(ServiceChanged),
    /// The progress of an app's release has changed.
    Release(ReleaseChanged),
    /// The progress of a download; at most once a second for each image and service.
    Download(Download),
    /// An update waits for a lock.
    LockWait(LockWait),
    /// A plugin postpones an update.
    UpdatePostponed(UpdatePostponed),
    /// A new release was not healthy within its time.
    ReleaseUnhealthy(ReleaseUnhealthy),
    /// The update of the operating system has progressed.
    OsUpdate(OsChanged),
    /// A step failed and is tried again.
    StepFailed(StepFailed),
    /// The device began to apply its target.
    ApplyBegin(ApplyBegin),
    /// The device has stopped applying its target.
    ApplyEnd(ApplyEnd),
    /// A plugin failed at a call through its own fault.
    PluginFault(PluginFault),
    /// The host is about to reboot or to power off.
    Power(PowerRequested),
}

impl Event {
    /// Returns the same event with a message of bounded length: messages of engines and plugins
    /// have no limit.
    #[must_use]
    pub fn bounded(mut self) -> Self {
        if let Event::LockWait(LockWait { message, .. })
        | Event::PluginFault(PluginFault { message, .. })
        | Event::UpdatePostponed(UpdatePostponed { message, .. })
        | Event::ReleaseUnhealthy(ReleaseUnhealthy { message, .. })
        | Event::StepFailed(StepFailed { message, .. }) = &mut self
            && message.len() > MAX_MESSAGE
        {
            cut(message);
        }
        if let Event::OsUpdate(OsChanged {
            message: Some(message),
            ..
        }) = &mut self
            && message.len() > MAX_MESSAGE
        {
            cut(message);
        }
        self
    }
}

fn cut(message: &mut String) {
    message.truncate(message.floor_char_boundary(MAX_MESSAGE));
    message.push('…');
}

/// The state of a service has changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ServiceChanged {
    /// The app's number.
    pub app_id: AppId,
    /// The service's name.
    pub service: ServiceName,
    /// As in `GET /v2/state/status`; null if the service no longer exists.
    #[schemars(with = "Option<String>")]
    pub status: Option<ServiceState>,
    /// The earlier state; null if the service did not exist.
    #[schemars(with = "Option<String>")]
    pub before: Option<ServiceState>,
    /// The container; null if there is none.
    pub container_id: Option<ContainerId>,
    /// The image of the container; null if the service no longer exists.
    pub image: Option<ImageRef>,
}

/// The progress of an app's release has changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReleaseChanged {
    /// The app's number.
    pub app_id: AppId,
    /// The progress of the target's release; null if the app no longer exists.
    #[schemars(with = "Option<String>")]
    pub status: Option<ReleaseState>,
    /// The release of which all services run; null until there is one.
    pub commit: Option<Commit>,
    /// The release that the target names.
    pub target_commit: Option<Commit>,
}

/// The progress of a download.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Download {
    /// The number of the app for which the image is downloaded.
    pub app_id: AppId,
    /// The name of the service for which the image is downloaded.
    pub service: ServiceName,
    /// The image's reference.
    pub image: ImageRef,
    /// Percent; 100 when the image is available.
    pub progress: u8,
}

/// An update waits for a lock.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LockWait {
    /// The app's number.
    pub app_id: AppId,
    /// The lock that blocks the update.
    pub message: String,
    /// The latest time of the next attempt; ISO 8601.
    pub retry_at: Moment,
}

/// A plugin postpones an update.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct UpdatePostponed {
    /// The app's number.
    pub app_id: AppId,
    /// The plugin's name.
    pub plugin: String,
    /// Its reason.
    pub message: String,
    /// The time of the next request to the plugin; ISO 8601.
    pub retry_at: Moment,
}

/// A new release was not healthy within its time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReleaseUnhealthy {
    /// The app's number.
    pub app_id: AppId,
    /// The release.
    pub commit: Commit,
    /// What was wrong.
    pub message: String,
    /// The release to which the device goes back; null if no other was ever healthy.
    pub back_to: Option<Commit>,
}

/// The update of the operating system has progressed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OsChanged {
    /// The version concerned.
    pub version: OsVersion,
    /// The progress of the version.
    pub state: OsProgress,
    /// Percent, while the version is being installed; otherwise null.
    pub progress: Option<u8>,
    /// Why the version is not tried again; otherwise null.
    pub message: Option<String>,
}

/// The progress of a version of the operating system.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum OsProgress {
    /// It is being installed next to the running version.
    Staging,
    /// It is installed, and waits for the update locks of all apps.
    Staged,
    /// The locks are held, and the next boot starts it.
    Activating,
    /// It runs, and its services must become healthy.
    OnTrial,
    /// It is permanent.
    Committed,
    /// It was not healthy or was given up by the boot loader, and is not tried again.
    Rejected,
    /// The next boot starts the version before it.
    RolledBack,
    /// It runs again after another one was rolled back.
    Returned,
}

/// A step failed and is tried again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StepFailed {
    /// The app's number; null if the step does not belong to an app.
    pub app_id: Option<AppId>,
    /// A description of the step.
    pub subject: String,
    /// What went wrong.
    pub message: String,
    /// How often it has failed in a row.
    pub failures: u32,
    /// The time of the next attempt; ISO 8601.
    pub retry_at: Moment,
}

/// The device began to apply its target.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ApplyBegin {
    /// The device is in local mode.
    pub local_mode: bool,
}

/// The device has stopped applying its target.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ApplyEnd {
    /// Everything is as the target says.
    pub reached: bool,
}

/// A plugin failed at a call through its own fault.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PluginFault {
    /// The plugin's name.
    pub plugin: String,
    /// The failure.
    pub message: String,
}

/// The host is about to reboot or to power off.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PowerRequested {
    /// `reboot` or `power-off`.
    #[schemars(with = "String")]
    pub action: PowerAction,
    /// Update locks are overridden.
    pub force: bool,
}
