//! What the device reports of itself: one value, published whenever it changes, that every state
//! endpoint and the cloud report are drawn from.

use std::collections::BTreeMap;

use crate::{
    AppId, AppUuid, Commit, ContainerId, EngineImageId, ImageId, ImageRef, ReleaseId, ServiceId,
    ServiceName,
};

/// The state of all apps at one moment.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DeviceStatus {
    /// The target is being applied; includes waiting to try again.
    pub applying: bool,
    /// There is something to change, or a check for it is under way.
    pub update_pending: bool,
    /// An image of the pending update has been downloaded.
    pub update_downloaded: bool,
    /// The last attempt failed.
    pub update_failed: bool,
    /// In the order of app ids.
    pub apps: BTreeMap<AppUuid, AppStatus>,
    /// Images of the current and the wanted releases.
    pub images: Vec<ImageStatus>,
    /// What the plan waits on, one sentence each; empty when the target is reached.
    pub waiting_on: Vec<String>,
}

/// An app, as far as it has come towards its target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AppStatus {
    pub id: AppId,
    pub name: String,
    /// The release that runs whole; missing until one does.
    pub commit: Option<Commit>,
    /// The release that the target names.
    pub target_commit: Option<Commit>,
    pub target_release: Option<ReleaseId>,
    pub state: ReleaseState,
    /// Services that have a container or a place in the target, by creation of the container.
    pub services: Vec<ServiceStatus>,
}

/// How far a release is (device behaviour 5.7).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ReleaseState {
    Rejected,
    Aborted,
    Downloading,
    Downloaded,
    ApplyingChanges,
    Done,
}

/// A service of an app: its container, or its image while there is none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServiceStatus {
    pub name: ServiceName,
    pub id: ServiceId,
    pub image_id: ImageId,
    pub release: ReleaseId,
    pub image: ImageRef,
    pub state: ServiceState,
    /// Percent; only while the image is downloaded.
    pub download_progress: Option<u8>,
    /// Missing while the service has no container.
    pub container: Option<ContainerId>,
    /// Milliseconds since the epoch.
    pub created_at_ms: Option<i64>,
    /// Whether the target's release has it.
    pub in_target: bool,
}

/// The status of a service (device behaviour 4.9); [`ServiceState::as_str`] gives the API's word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ServiceState {
    Downloading,
    Downloaded,
    Deleting,
    Installing,
    Installed,
    Starting,
    Running,
    Stopping,
    HandingOver,
    AwaitingHandover,
    Dead,
    Exited,
    Paused,
    Restarting,
    Removing,
}

impl ServiceState {
    /// The word that clients read (device behaviour 4.9).
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            ServiceState::Downloading => "Downloading",
            ServiceState::Downloaded => "Downloaded",
            ServiceState::Deleting => "Deleting",
            ServiceState::Installing => "Installing",
            ServiceState::Installed => "Installed",
            ServiceState::Starting => "Starting",
            ServiceState::Running => "Running",
            ServiceState::Stopping => "Stopping",
            ServiceState::HandingOver => "Handing over",
            ServiceState::AwaitingHandover => "Awaiting handover",
            ServiceState::Dead => "Dead",
            ServiceState::Exited => "exited",
            ServiceState::Paused => "paused",
            ServiceState::Restarting => "restarting",
            ServiceState::Removing => "removing",
        }
    }
}

impl ReleaseState {
    /// The word that clients read (device behaviour 5.7).
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            ReleaseState::Rejected => "rejected",
            ReleaseState::Aborted => "aborted",
            ReleaseState::Downloading => "downloading",
            ReleaseState::Downloaded => "downloaded",
            ReleaseState::ApplyingChanges => "applying changes",
            ReleaseState::Done => "done",
        }
    }
}

/// An image of the target, as far as it is here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImageStatus {
    pub name: ImageRef,
    pub app_id: AppId,
    pub service: ServiceName,
    pub image_id: ImageId,
    /// Missing while it is downloaded.
    pub engine_id: Option<EngineImageId>,
    pub state: ImageState,
    /// Percent; only while it is downloaded.
    pub download_progress: Option<u8>,
}

/// Where an image is on its way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ImageState {
    Downloading,
    Downloaded,
    Deleting,
}

impl ImageState {
    /// The word that clients read (device behaviour 4.9).
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            ImageState::Downloading => "Downloading",
            ImageState::Downloaded => "Downloaded",
            ImageState::Deleting => "Deleting",
        }
    }
}
