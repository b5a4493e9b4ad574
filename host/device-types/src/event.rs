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
#[schemars(rename = "Happening")]
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
    /// The update of the operating system has gone on.
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
    /// As in `GET /v2/state/status`; null once nothing is left of the service.
    #[schemars(with = "Option<String>")]
    pub status: Option<ServiceState>,
    /// What it was before; null where there was nothing of it.
    #[schemars(with = "Option<String>")]
    pub before: Option<ServiceState>,
    /// The container; null while there is none.
    pub container_id: Option<ContainerId>,
    /// The image that it is made from; null once nothing is left of the service.
    pub image: Option<ImageRef>,
}

/// The progress of an app's release has changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReleaseChanged {
    /// The app's number.
    pub app_id: AppId,
    /// How far the target's release has come; null once nothing is left of the app.
    #[schemars(with = "Option<String>")]
    pub status: Option<ReleaseState>,
    /// The release that runs whole; null until one does.
    pub commit: Option<Commit>,
    /// The release that the target names.
    pub target_commit: Option<Commit>,
}

/// The progress of a download.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Download {
    /// The number of the app that it is for.
    pub app_id: AppId,
    /// The name of the service that it is for.
    pub service: ServiceName,
    /// The image's reference.
    pub image: ImageRef,
    /// Percent; 100 once the image is there.
    pub progress: u8,
}

/// An update waits for a lock.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LockWait {
    /// The app's number.
    pub app_id: AppId,
    /// Which lock is in the way.
    pub message: String,
    /// When it is tried again at the latest; ISO 8601.
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
    /// When it is asked again; ISO 8601.
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
    /// The release that the device goes back to; null if no other was ever healthy.
    pub back_to: Option<Commit>,
}

/// The update of the operating system has gone on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OsChanged {
    /// The version that it is about.
    pub version: OsVersion,
    /// How far it is.
    pub state: OsProgress,
    /// Percent, while the version is being installed; else null.
    pub progress: Option<u8>,
    /// Why the version is not tried again; else null.
    pub message: Option<String>,
}

/// How far a version of the operating system is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum OsProgress {
    /// It is being installed beside the one that runs.
    Staging,
    /// It is installed, and waits for the update locks of all apps.
    Staged,
    /// The locks are held, and the next boot starts it.
    Activating,
    /// It runs, and its services have to become healthy.
    OnTrial,
    /// It stays.
    Committed,
    /// It was not healthy or was given up by the boot loader, and is not tried again.
    Rejected,
    /// The next boot starts what ran before it.
    RolledBack,
    /// It runs again after another one was rolled back.
    Returned,
}

/// A step failed and is tried again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StepFailed {
    /// The app's number; null where the step is no app's.
    pub app_id: Option<AppId>,
    /// What it is about, in words.
    pub subject: String,
    /// What went wrong.
    pub message: String,
    /// How often it has failed in a row.
    pub failures: u32,
    /// When it is tried again; ISO 8601.
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
    /// What it did.
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
