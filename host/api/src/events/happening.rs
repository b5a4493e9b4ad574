//! The events, each with what is told of it.

use schemars::JsonSchema;
use serde::Serialize;

use crate::moment::Moment;

/// Something that has happened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(tag = "type", content = "data", rename_all = "kebab-case")]
pub enum Happening {
    /// The state of a service is another.
    Service(ServiceChanged),
    /// How far an app's release is has changed.
    Release(ReleaseChanged),
    /// How far a download is; at most once a second for each image and service.
    Download(Download),
    /// An update waits for a lock.
    LockWait(LockWait),
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

/// The longest message of an event, in bytes.
const MAX_MESSAGE: usize = 1024;

/// The kind of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum EventType {
    /// [`Happening::Service`].
    Service,
    /// [`Happening::Release`].
    Release,
    /// [`Happening::Download`].
    Download,
    /// [`Happening::LockWait`].
    LockWait,
    /// [`Happening::StepFailed`].
    StepFailed,
    /// [`Happening::ApplyBegin`].
    ApplyBegin,
    /// [`Happening::ApplyEnd`].
    ApplyEnd,
    /// [`Happening::PluginFault`].
    PluginFault,
    /// [`Happening::Power`].
    Power,
}

impl EventType {
    /// All of them.
    pub const ALL: [EventType; 9] = [
        EventType::Service,
        EventType::Release,
        EventType::Download,
        EventType::LockWait,
        EventType::StepFailed,
        EventType::ApplyBegin,
        EventType::ApplyEnd,
        EventType::PluginFault,
        EventType::Power,
    ];

    /// As clients write it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            EventType::Service => "service",
            EventType::Release => "release",
            EventType::Download => "download",
            EventType::LockWait => "lock-wait",
            EventType::StepFailed => "step-failed",
            EventType::ApplyBegin => "apply-begin",
            EventType::ApplyEnd => "apply-end",
            EventType::PluginFault => "plugin-fault",
            EventType::Power => "power",
        }
    }
}

impl Happening {
    /// What kind it is.
    #[must_use]
    pub fn kind(&self) -> EventType {
        match self {
            Happening::Service(_) => EventType::Service,
            Happening::Release(_) => EventType::Release,
            Happening::Download(_) => EventType::Download,
            Happening::LockWait(_) => EventType::LockWait,
            Happening::StepFailed(_) => EventType::StepFailed,
            Happening::ApplyBegin(_) => EventType::ApplyBegin,
            Happening::ApplyEnd(_) => EventType::ApplyEnd,
            Happening::PluginFault(_) => EventType::PluginFault,
            Happening::Power(_) => EventType::Power,
        }
    }

    /// The same with a message of bounded length: those of engines and plugins are as long as they like.
    pub(super) fn bounded(mut self) -> Self {
        match &mut self {
            Happening::LockWait(LockWait { message, .. })
            | Happening::PluginFault(PluginFault { message, .. })
            | Happening::StepFailed(StepFailed { message, .. }) => shorten(message),
            Happening::Service(_)
            | Happening::Release(_)
            | Happening::Download(_)
            | Happening::ApplyBegin(_)
            | Happening::ApplyEnd(_)
            | Happening::Power(_) => {}
        }
        self
    }
}

/// The state of a service is another.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ServiceChanged {
    /// The app's number.
    pub app_id: u64,
    /// The service's name.
    pub service: String,
    /// As in `GET /v2/state/status`; null once nothing is left of the service.
    pub status: Option<&'static str>,
    /// What it was before; null where there was nothing of it.
    pub before: Option<&'static str>,
    /// The container; null while there is none.
    pub container_id: Option<String>,
    /// The image that it is made from; null once nothing is left of the service.
    pub image: Option<String>,
}

/// How far an app's release is has changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReleaseChanged {
    /// The app's number.
    pub app_id: u64,
    /// How far the target's release is; null once nothing is left of the app.
    pub status: Option<&'static str>,
    /// The release that runs whole; null until one does.
    pub commit: Option<String>,
    /// The release that the target names.
    pub target_commit: Option<String>,
}

/// How far a download is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Download {
    /// The number of the app that it is for.
    pub app_id: u64,
    /// The name of the service that it is for.
    pub service: String,
    /// The image's reference.
    pub image: String,
    /// Percent; 100 once the image is there.
    pub progress: u8,
}

/// An update waits for a lock.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LockWait {
    /// The app's number.
    pub app_id: u64,
    /// Which lock is in the way.
    pub message: String,
    /// When it is tried again at the latest; ISO 8601.
    pub retry_at: Moment,
}

/// A step failed and is tried again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StepFailed {
    /// The app's number; null where the step is no app's.
    pub app_id: Option<u64>,
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
    pub action: &'static str,
    /// Update locks are overridden.
    pub force: bool,
}

fn shorten(text: &mut String) {
    if text.len() > MAX_MESSAGE {
        let mut end = MAX_MESSAGE;
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        text.truncate(end);
        text.push('…');
    }
}
