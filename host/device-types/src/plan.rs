//! What the device is about to do, and what delays each step: the answer of `GET /v3/plan`. The planner supplies the
//! reasons, the reconciler the rest.

mod blocker;

use model::{AppId, AppUuid, Commit, ContainerId, EngineKind, ImageRef, OsVersion, ServiceName};
use schemars::JsonSchema;
use serde::Serialize;

pub use blocker::{BlockReason, Blocker};

/// What the device is about to do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DevicePlan {
    /// The state of the device.
    pub state: PlanState,
    /// The device is in local mode.
    pub local_mode: bool,
    /// The steps in order. Steps of one stage may run at the same time.
    pub steps: Vec<PlanStep>,
    /// Differences from the target for which there is no step, and why.
    pub unplanned: Vec<UnplannedChange>,
    /// There are more steps than are shown.
    pub cut_short: bool,
    /// Present if the device's owner requires signed targets.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signed_targets: Option<SignedTargets>,
}

/// The result of checking the signatures of the cloud's last target.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SignedTargets {
    /// Why the target was refused, one sentence per reason; the previous target stays in force. Missing if it was not
    /// refused. An app's key sees no sentences.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refused: Option<Vec<String>>,
}

/// The state of the device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PlanState {
    /// There is nothing to do.
    Settled,
    /// There is something to do.
    Applying,
    /// The state of the engines is not known yet.
    Looking,
    /// The device has no target state.
    NoTarget,
    /// The device is leaving local mode; after that the cloud's target is in force.
    LeavingLocalMode,
}

/// One planned step.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PlanStep {
    /// From 1, in the plan of the whole device; an app's key sees gaps.
    pub number: usize,
    /// From 1; the steps of one stage may run at the same time.
    pub stage: usize,
    /// The kind of step.
    pub kind: StepKind,
    /// The state of the step.
    pub state: StepState,
    /// The reason for the step.
    pub reason: StepReason,
    /// Whether the step disturbs a service, so that the update locks of its app are held while it runs.
    pub needs_locks: bool,
    /// The app's number; missing if the step belongs to no app or to several.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub app_id: Option<AppId>,
    /// The app's uuid.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub app_uuid: Option<AppUuid>,
    /// The service's name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub service: Option<ServiceName>,
    /// The reference of the image that is downloaded or removed, or from which the service is created.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub image: Option<ImageRef>,
    /// The engine; missing until the registry has said which one runs the image.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub engine: Option<EngineKind>,
    /// The container that is stopped, removed, renamed or started; missing if it does not exist yet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub container_id: Option<ContainerId>,
    /// The engine's name of the volume or network, or the new name of the container.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The release that is recorded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub commit: Option<Commit>,
    /// The version of the operating system concerned, or that the reboot starts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub os_version: Option<OsVersion>,
    /// Percent of a download in progress.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub progress: Option<u8>,
    /// The services for which an image is downloaded.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub users: Vec<ImageUser>,
    /// Everything that blocks the step; empty unless the state is `blocked`.
    pub blocked_by: Vec<BlockReason>,
}

/// The kind of step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum StepKind {
    /// An image is downloaded.
    PullImage,
    /// An image is removed.
    RemoveImage,
    /// A volume is created.
    CreateVolume,
    /// A volume is removed, with its data.
    RemoveVolume,
    /// A network is created.
    CreateNetwork,
    /// A network is removed.
    RemoveNetwork,
    /// A service's container is stopped and kept.
    StopService,
    /// A service's container is stopped and removed.
    RemoveService,
    /// A service's container gets the name of another release, and keeps running unchanged.
    RenameService,
    /// A new container is started next to the old one, which is removed as soon as the new one says so.
    HandOverService,
    /// A container is created and not started.
    CreateService,
    /// A container is created, if there is none, and started.
    StartService,
    /// The release is recorded as the running one.
    RecordRelease,
    /// The record of the running release is removed.
    ForgetRelease,
    /// A part of the host's configuration is changed; `name` says which.
    ConfigureHost,
    /// A version of the operating system, `osVersion`, is installed next to the running one.
    StageOs,
    /// The running version of the operating system becomes permanent.
    CommitOs,
    /// The next boot starts the version before this version of the operating system.
    RollBackOs,
    /// Services are stopped and the host is rebooted, under the update locks of all apps.
    Reboot,
}

/// The state of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum StepState {
    /// It is in progress.
    Running,
    /// Nothing blocks it.
    Ready,
    /// `blockedBy` says what blocks it.
    Blocked,
}

/// The reason for a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum StepReason {
    /// The target has it and the device does not.
    Missing,
    /// The device has it and the target does not.
    NotInTarget,
    /// Its image is not the target's.
    ImageChanged,
    /// Its configuration is not the target's.
    ConfigurationChanged,
    /// The service has replaced its key to the API.
    KeyReplaced,
    /// Only its release is not the target's.
    ReleaseChanged,
    /// A volume or network that it uses is recreated.
    ComponentChanged,
    /// The service whose network it shares is recreated.
    NetworkChanged,
    /// There is a newer container of the same service.
    Duplicate,
    /// The engine failed to remove it, or keeps refusing to start it.
    Dead,
    /// It does not run, but should according to the target.
    NotRunning,
    /// It runs, but should not according to the target.
    NotToRun,
    /// Nothing uses it any longer.
    Unused,
    /// It makes room for the next download.
    MakesRoom,
    /// Its recreation was requested.
    Restart,
    /// A purge of the app's data was requested.
    Purge,
    /// All steps before it are complete.
    Reached,
    /// It makes earlier changes take effect.
    TakesEffect,
    /// It was tried, and was not healthy.
    Unhealthy,
}

/// A service that uses an image.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ImageUser {
    /// The app's number.
    pub app_id: AppId,
    /// The service's name.
    pub service: ServiceName,
}

/// Something that stays unchanged.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct UnplannedChange {
    /// The app's number; missing if it concerns the whole device.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub app_id: Option<AppId>,
    /// The app's uuid.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub app_uuid: Option<AppUuid>,
    /// The service's name, if it is a single service.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub service: Option<ServiceName>,
    /// The reasons.
    pub blocked_by: Vec<BlockReason>,
}
