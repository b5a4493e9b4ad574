//! What the device is about to do, and what holds each step up: the answer of `GET /v3/plan`. The planner gives the
//! reasons, the reconciler the rest.

use std::fmt;

use model::{AppId, AppUuid, Commit, ContainerId, EngineKind, ImageRef, ServiceName};
use schemars::JsonSchema;
use serde::Serialize;

use crate::Moment;

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
    #[schemars(with = "Option<u64>")]
    pub app_id: Option<AppId>,
    /// The app's uuid.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub app_uuid: Option<AppUuid>,
    /// The service's name.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub service: Option<ServiceName>,
    /// The reference of the image that is downloaded, removed, or that the service is made from.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub image: Option<ImageRef>,
    /// The engine; missing where the registry has yet to say which one runs the image.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub engine: Option<EngineKind>,
    /// The container that is stopped, removed, renamed or started; missing while it is not there.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub container_id: Option<ContainerId>,
    /// What the engine calls the volume or network, or what the container is renamed to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The release that is recorded.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub commit: Option<Commit>,
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
}

/// A service that an image is for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ImageUser {
    /// The app's number.
    #[schemars(with = "u64")]
    pub app_id: AppId,
    /// The service's name.
    #[schemars(with = "String")]
    pub service: ServiceName,
}

/// One thing that is in the way.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Blocked {
    /// It, as data.
    #[serde(flatten)]
    pub by: Blocker,
    /// The same for a person.
    pub message: String,
}

impl From<Blocker> for Blocked {
    fn from(by: Blocker) -> Self {
        Blocked {
            message: by.to_string(),
            by,
        }
    }
}

/// What is in the way of a step.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(
    tag = "kind",
    rename_all = "kebab-case",
    rename_all_fields = "camelCase"
)]
pub enum Blocker {
    /// An image that is not there yet. No step of the app may disturb a service before it is.
    Image {
        /// Its reference.
        #[schemars(with = "String")]
        image: ImageRef,
    },
    /// A service of the same app that is to be started before.
    Dependency {
        /// Its name.
        #[schemars(with = "String")]
        service: ServiceName,
    },
    /// A volume or network that is to be made before.
    Component {
        /// What the engine calls it.
        name: String,
    },
    /// The engine is still removing an old container.
    Removal,
    /// Steps before it.
    EarlierSteps,
    /// It failed and waits to be tried again.
    BackOff {
        /// When that is; ISO 8601.
        #[schemars(with = "String")]
        until: Moment,
        /// How often it has failed in a row.
        failures: u32,
        /// What went wrong; clients read it in the message.
        #[serde(skip)]
        reason: String,
    },
    /// An update lock that a service's user holds.
    Lock {
        /// The app's number.
        #[schemars(with = "u64")]
        app_id: AppId,
        /// The service that is locked.
        #[schemars(with = "String")]
        service: ServiceName,
    },
    /// An engine that does not answer.
    EngineSilent {
        /// Which.
        #[schemars(with = "String")]
        engine: EngineKind,
        /// Why it does not; clients read it in the message.
        #[serde(skip)]
        reason: String,
    },
    /// An engine that this device does not have.
    EngineMissing {
        /// Which.
        #[schemars(with = "String")]
        engine: EngineKind,
    },
    /// The host is about to reboot or to power off.
    GoingDown,
    /// A service that is started after the next reboot.
    Reboot,
    /// The device was rebooted for its target and did not reach it: it is not done again before there is another.
    RebootedInVain {
        /// How often.
        times: u32,
        /// What for; clients read it in the message.
        #[serde(skip)]
        reasons: String,
    },
    /// The app is the host's or the supervisor's own.
    NotOurs,
    /// The release was refused: the log says why.
    ReleaseRejected,
    /// The device is in local mode, and this is the cloud's.
    LocalMode,
    /// The service was stopped over the API.
    StoppedByUser,
    /// The next update: it is not done for its own sake.
    NextUpdate,
}

impl fmt::Display for Blocker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Blocker::Image { image } => write!(f, "the image `{image}` is not available yet"),
            Blocker::Dependency { service } => {
                write!(f, "the service `{service}` must be started first")
            }
            Blocker::Component { name } => {
                write!(f, "the volume or network `{name}` must be created first")
            }
            Blocker::Removal => f.write_str("the engine is still removing an old container"),
            Blocker::EarlierSteps => f.write_str("the steps of earlier stages come first"),
            Blocker::BackOff { reason, .. } => write!(f, "it is tried again later: {reason}"),
            // Without the file's path: the host's paths are nobody's business.
            Blocker::Lock { service, .. } => {
                write!(f, "the service `{service}` holds its update lock")
            }
            Blocker::EngineSilent { engine, reason } => {
                write!(f, "the {engine} engine does not answer: {reason}")
            }
            Blocker::EngineMissing { engine } => write!(
                f,
                "it needs the {engine} engine, which this device does not have"
            ),
            Blocker::GoingDown => f.write_str("the host is about to go down"),
            Blocker::Reboot => f.write_str("it is started after the next reboot"),
            Blocker::RebootedInVain { times, reasons } => write!(
                f,
                "the device was rebooted {times} times for {reasons} without reaching its target"
            ),
            Blocker::NotOurs => f.write_str(
                "the app is the host's or the supervisor's own, which this supervisor does not run",
            ),
            Blocker::ReleaseRejected => {
                f.write_str("the release was refused, so the running services of the app are left alone")
            }
            Blocker::LocalMode => f.write_str(
                "the device is in local mode, and the app belongs to the cloud's target",
            ),
            Blocker::StoppedByUser => f.write_str(
                "it was stopped over the API, and stays stopped until it is started over the API",
            ),
            Blocker::NextUpdate => f.write_str(
                "the service gets its new API key with the next update, which `POST /v1/update` begins",
            ),
        }
    }
}

/// Something that stays as it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Unplanned {
    /// The app's number; missing for what concerns the whole device.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<u64>")]
    pub app_id: Option<AppId>,
    /// The app's uuid.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub app_uuid: Option<AppUuid>,
    /// The service's name, where it is one service.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub service: Option<ServiceName>,
    /// What is in the way.
    pub blocked_by: Vec<Blocked>,
}
