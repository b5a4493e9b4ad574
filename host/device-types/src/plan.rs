//! What the device is about to do, and what delays each step: the answer of `GET /v3/plan`. The planner supplies the
//! reasons, the reconciler the rest.

mod blocker;

use model::{AppId, AppUuid, Commit, ContainerId, EngineKind, ImageRef, OsVersion, ServiceName};
use schemars::JsonSchema;
use serde::Serialize;

pub use blocker::{Blocked, Blocker};

/// What the device is about to do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DevicePlan {
    /// What the device is at.
    pub state: PlanState,
    /// The device is in local mode.
    pub local_mode: bool,
    /// In order. Those of one stage may be taken side by side.
    pub steps: Vec<PlanStep>,
    /// What no step leads to, and why.
    pub unplanned: Vec<Unplanned>,
    /// There are more steps than are shown.
    pub cut_short: bool,
    /// There where the device's owner wants targets signed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signed_targets: Option<SignedTargets>,
}

/// What became of the signatures of the cloud's last target.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SignedTargets {
    /// Why it was refused, a sentence each: the target before it stays in force. Missing where it was not. An app's
    /// key sees no sentences.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refused: Option<Vec<String>>,
}

/// What the device is at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PlanState {
    /// Nothing is left to do.
    Settled,
    /// There is something to do.
    Applying,
    /// The engines have not been asked yet what they hold.
    Looking,
    /// The device has no target state.
    NoTarget,
    /// Local mode is being left; after that the cloud's target is in force.
    LeavingLocalMode,
}

/// One step to come.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PlanStep {
    /// From 1, in the plan of the whole device: an app's key sees gaps.
    pub number: usize,
    /// From 1: a step may be taken side by side with the others of its stage.
    pub stage: usize,
    /// What is done.
    pub kind: StepKind,
    /// How far it is.
    pub state: StepState,
    /// Why it is done.
    pub reason: StepReason,
    /// It disturbs a service, so the update locks of its app are held around it.
    pub needs_locks: bool,
    /// The app's number; missing for what is no app's, or of several.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub app_id: Option<AppId>,
    /// The app's uuid.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub app_uuid: Option<AppUuid>,
    /// The service's name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub service: Option<ServiceName>,
    /// The reference of the image that is downloaded, removed, or that the service is made from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub image: Option<ImageRef>,
    /// The engine; missing where the registry has yet to say which one runs the image.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub engine: Option<EngineKind>,
    /// The container that is stopped, removed, renamed or started; missing while it is not there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub container_id: Option<ContainerId>,
    /// What the engine calls the volume or network, or what the container is renamed to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The release that is recorded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub commit: Option<Commit>,
    /// The version of the operating system that it is about, or that the reboot starts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub os_version: Option<OsVersion>,
    /// Percent, of a download under way.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub progress: Option<u8>,
    /// The services that an image is downloaded for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub users: Vec<ImageUser>,
    /// Everything that is in the way; empty unless the state is `blocked`.
    pub blocked_by: Vec<Blocked>,
}

/// What is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum StepKind {
    /// An image is downloaded.
    PullImage,
    /// An image is removed.
    RemoveImage,
    /// A volume is made.
    CreateVolume,
    /// A volume is removed, with what is in it.
    RemoveVolume,
    /// A network is made.
    CreateNetwork,
    /// A network is removed.
    RemoveNetwork,
    /// A service's container is stopped and kept.
    StopService,
    /// A service's container is stopped and removed.
    RemoveService,
    /// A service's container gets the name of another release, and goes on as it is.
    RenameService,
    /// A new container is started beside the old one, which goes once the new one says so.
    HandOverService,
    /// A container is made and not started.
    CreateService,
    /// A container is made where there is none, and started.
    StartService,
    /// The release is recorded as the one that runs.
    RecordRelease,
    /// It is forgotten which release ran.
    ForgetRelease,
    /// A part of the host's configuration, which `name` tells, is changed.
    ConfigureHost,
    /// A version of the operating system, `osVersion`, is installed beside the one that runs.
    StageOs,
    /// The version of the operating system that runs stays.
    CommitOs,
    /// The next boot starts what ran before this version of the operating system.
    RollBackOs,
    /// Services are stopped and the host is rebooted, under the update locks of all apps.
    Reboot,
}

/// How far a step is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum StepState {
    /// It is being done.
    Running,
    /// Nothing is in its way.
    Ready,
    /// `blockedBy` says what is in its way.
    Blocked,
}

/// Why a step is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum StepReason {
    /// The target has it and the device does not.
    Missing,
    /// The device has it and the target does not.
    NotInTarget,
    /// It is made from another image than the target's.
    ImageChanged,
    /// It is made with another configuration than the target's.
    ConfigurationChanged,
    /// The service has replaced its key to the API.
    KeyReplaced,
    /// Only the release is another.
    ReleaseChanged,
    /// A volume or network that it uses is made anew.
    ComponentChanged,
    /// The service whose network it shares is made anew.
    NetworkChanged,
    /// There is a newer container of the same service.
    Duplicate,
    /// The engine failed to remove it.
    Dead,
    /// The target wants it to run, and it does not.
    NotRunning,
    /// It runs, and is not to.
    NotToRun,
    /// Nothing uses it any more.
    Unused,
    /// Room is made for what is downloaded next.
    MakesRoom,
    /// Somebody asked for it to be made anew.
    Restart,
    /// Somebody asked for the app's data to be purged.
    Purge,
    /// Everything that comes before it is done.
    Reached,
    /// What was changed before takes effect with it.
    TakesEffect,
    /// It was tried, and was not healthy.
    Unhealthy,
}

/// A service that an image is for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ImageUser {
    /// The app's number.
    pub app_id: AppId,
    /// The service's name.
    pub service: ServiceName,
}

/// Something that stays as it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Unplanned {
    /// The app's number; missing for what concerns the whole device.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub app_id: Option<AppId>,
    /// The app's uuid.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub app_uuid: Option<AppUuid>,
    /// The service's name, where it is one service.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub service: Option<ServiceName>,
    /// What is in the way.
    pub blocked_by: Vec<Blocked>,
}
