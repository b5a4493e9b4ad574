//! The status that the device reports: one value, published whenever it changes, from which every state endpoint and
//! the cloud report are built.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize, Serializer};
use strum::IntoStaticStr;

use crate::{
    AppId, AppUuid, Commit, ContainerId, EngineImageId, ImageId, ImageRef, OsVersion, ReleaseId,
    ServiceId, ServiceName,
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
    /// The apps, in the order of their ids.
    pub apps: BTreeMap<AppUuid, AppStatus>,
    /// Apps with an action under way, which may have removed their containers temporarily.
    pub acting: BTreeSet<AppUuid>,
    /// Images of the current and the wanted releases.
    pub images: Vec<ImageStatus>,
    /// What the plan is waiting for, one sentence each; empty when the target is reached.
    pub waiting_on: Vec<String>,
    /// The version of the operating system in the target, if it failed and is not tried again.
    pub rejected_os: Option<OsVersion>,
}

/// The progress of an app towards its target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AppStatus {
    /// The app's number.
    pub id: AppId,
    /// The app's name in the target.
    pub name: String,
    /// The release that runs completely; absent until one does.
    pub commit: Option<Commit>,
    /// The release that the target names.
    pub target_commit: Option<Commit>,
    /// The number of that release.
    pub target_release: Option<ReleaseId>,
    /// The progress of the target's release.
    pub state: ReleaseState,
    /// Services that have a container or a place in the target, by creation of the container.
    pub services: Vec<ServiceStatus>,
    /// The release in the cloud's target, if it was not healthy: the last healthy one runs instead, and `target_commit`
    /// names that one.
    pub rejected_release: Option<RejectedRelease>,
}

/// A release that was installed and was not healthy within its time (docs/spec/device.md#release-health).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RejectedRelease {
    /// The release's commit.
    pub commit: Commit,
    /// What was wrong, in one sentence without a full stop.
    pub reason: String,
}

/// The progress of a release (docs/spec/device.md#release-progress); as `&str`, the API's word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, IntoStaticStr)]
#[strum(serialize_all = "lowercase")]
pub enum ReleaseState {
    /// The release was refused: nothing of it is applied.
    Rejected,
    /// The release was not healthy, and the last healthy one runs instead. This is reported only to the cloud: in the
    /// device's own API it is not a state of the target.
    Aborted,
    /// An image of the release is not completely downloaded.
    Downloading,
    /// All images are downloaded, and a service has no container yet.
    Downloaded,
    /// Containers are being created, replaced, started or stopped.
    #[strum(serialize = "applying changes")]
    ApplyingChanges,
    /// The release runs.
    Done,
}

/// A service of an app: its container, or its image while there is none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServiceStatus {
    /// The service's name, unique in the app.
    pub name: ServiceName,
    /// The service's number.
    pub id: ServiceId,
    /// The number of the container's image, or of the one in the target; 0 if the container does not state it.
    pub image_id: ImageId,
    /// The release of the container, or the one in the target; 0 if the container does not state it.
    pub release: ReleaseId,
    /// The release's commit; absent if the container does not state it.
    pub commit: Option<Commit>,
    /// The reference of the container's image, or the one in the target.
    pub image: ImageRef,
    /// The last state that the engine reported for the container, or the action in progress.
    pub state: ServiceState,
    /// In percent; present only while the image is being downloaded.
    pub download_progress: Option<u8>,
    /// Absent while the service has no container.
    pub container: Option<ContainerId>,
    /// When the container was created, in milliseconds since the epoch.
    pub created_at_ms: Option<i64>,
    /// Whether the target's release contains it.
    pub in_target: bool,
}

/// The status of a service (docs/spec/device.md#status-words); as `&str`, the API's word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, IntoStaticStr)]
pub enum ServiceState {
    /// No container; the image is not downloaded, whether the download has begun or not.
    Downloading,
    /// No container; the image is downloaded.
    Downloaded,
    /// No container; the image is being removed.
    Deleting,
    /// The container is being created.
    Installing,
    /// The container was created but not started.
    Installed,
    /// The container is being started.
    Starting,
    /// The container runs; the v1 API calls this `Idle`.
    Running,
    /// The container is being stopped.
    Stopping,
    /// The older of two containers, while the newer one takes over (docs/spec/device.md#hand-over).
    #[strum(serialize = "Handing over")]
    HandingOver,
    /// The newer of two containers, until it has taken over.
    #[strum(serialize = "Awaiting handover")]
    AwaitingHandover,
    /// The engine failed to remove the container.
    Dead,
    /// The container has ended.
    #[strum(serialize = "exited")]
    Exited,
    /// The container's processes are frozen.
    #[strum(serialize = "paused")]
    Paused,
    /// The container has ended, and the engine is about to start it again.
    #[strum(serialize = "restarting")]
    Restarting,
    /// The engine is removing the container.
    #[strum(serialize = "removing")]
    Removing,
}

impl Serialize for ServiceState {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.into())
    }
}

impl Serialize for ReleaseState {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.into())
    }
}

/// The progress of an image of the target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImageStatus {
    /// The reference in the target or of a container.
    pub name: ImageRef,
    /// The app whose service uses it.
    pub app_id: AppId,
    /// The service that uses it.
    pub service: ServiceName,
    /// The image's number for that service; 0 if it is unknown.
    pub image_id: ImageId,
    /// Absent while the image is being downloaded.
    pub engine_id: Option<EngineImageId>,
    /// The progress of its download or removal.
    pub state: ImageState,
    /// In percent; present only while the image is being downloaded.
    pub download_progress: Option<u8>,
}

/// The progress of the download or removal of an image; as `&str`, the API's word (docs/spec/device.md#status-words).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, IntoStaticStr)]
pub enum ImageState {
    /// Not completely downloaded, whether the download has begun or not.
    Downloading,
    /// An engine has the image.
    Downloaded,
    /// The image is being removed.
    Deleting,
}
