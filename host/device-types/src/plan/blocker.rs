//! What is in the way of a step.

use model::{AppId, Commit, EngineKind, ImageRef, OsVersion, ServiceName};
use schemars::JsonSchema;
use serde::Serialize;

use crate::Moment;

/// One reason why a step is blocked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BlockReason {
    /// The reason as data.
    #[serde(flatten)]
    pub by: Blocker,
    /// The same for a person.
    pub message: String,
}

impl From<Blocker> for BlockReason {
    fn from(by: Blocker) -> Self {
        BlockReason {
            message: by.to_string(),
            by,
        }
    }
}

/// A reason why a step is blocked.
#[derive(Debug, Clone, PartialEq, Eq, derive_more::Display, Serialize, JsonSchema)]
#[serde(
    tag = "kind",
    rename_all = "kebab-case",
    rename_all_fields = "camelCase"
)]
pub enum Blocker {
    /// An image that is not available yet. Until it is, no step of the app may disturb a service.
    #[display("the image `{image}` is not available yet")]
    Image {
        /// Its reference.
        image: ImageRef,
    },
    /// A service of the same app that must be started first.
    #[display("the service `{service}` must be started first")]
    Dependency {
        /// Its name.
        service: ServiceName,
    },
    /// A volume or network that must be created first.
    #[display("the volume or network `{name}` must be created first")]
    Component {
        /// The engine's name for it.
        name: String,
    },
    /// The engine is still removing an old container.
    #[display("the engine is still removing an old container")]
    Removal,
    /// Earlier steps.
    #[display("the steps of earlier stages come first")]
    EarlierSteps,
    /// The step failed and waits for the next attempt.
    #[display("it is tried again later: {reason}")]
    BackOff {
        /// The time of the next attempt; ISO 8601.
        #[schemars(with = "String")]
        until: Moment,
        /// How often it has failed in a row.
        failures: u32,
        /// What went wrong; clients read it in the message.
        #[serde(skip)]
        reason: String,
    },
    /// An update lock that a service's user holds.
    // Without the file's path: the host's paths are nobody's business.
    #[display("the service `{service}` holds its update lock")]
    Lock {
        /// The app's number.
        app_id: AppId,
        /// The service that is locked.
        service: ServiceName,
    },
    /// A plugin that postpones the update.
    #[display("the plugin `{plugin}` postpones the update: {reason}")]
    UpdateGate {
        /// Its name.
        plugin: String,
        /// The time of the next request to the plugin; ISO 8601.
        #[schemars(with = "String")]
        until: Moment,
        /// Its reason; clients read it in the message.
        #[serde(skip)]
        reason: String,
    },
    /// An engine that does not answer.
    #[display("the {engine} engine does not answer: {reason}")]
    EngineSilent {
        /// The engine's kind.
        engine: EngineKind,
        /// Why it does not answer; clients read it in the message.
        #[serde(skip)]
        reason: String,
    },
    /// An engine that this device does not have.
    #[display("it needs the {engine} engine, which this device does not have")]
    EngineMissing {
        /// The engine's kind.
        engine: EngineKind,
    },
    /// The host is about to reboot or to power off.
    #[display("the host is about to go down")]
    GoingDown,
    /// A service that is started after the next reboot.
    #[display("it is started after the next reboot")]
    Reboot,
    /// The device was rebooted for its target and did not reach it: it is not rebooted again until the target changes.
    #[display("the device was rebooted {times} times for {reasons} without reaching its target")]
    RebootedInVain {
        /// The number of reboots.
        times: u32,
        /// The reasons for the reboots; clients read them in the message.
        #[serde(skip)]
        reasons: String,
    },
    /// The app is the host's or the supervisor's own.
    #[display("the app is the host's or the supervisor's own, which this supervisor does not run")]
    NotOurs,
    /// The release was refused: the log says why.
    #[display("the release was refused, so the running services of the app are left alone")]
    ReleaseRejected,
    /// The release of the target was installed, was not healthy within its time, and is not tried again.
    #[display(
        "release {commit} was not healthy, so the last healthy release runs in its place: {reason}"
    )]
    ReleaseUnhealthy {
        /// The release.
        commit: Commit,
        /// What was wrong; clients read it in the message.
        #[serde(skip)]
        reason: String,
    },
    /// The release was installed a short while ago, and has not been found healthy yet.
    #[display("the release is on trial: {reason}")]
    ReleaseOnTrial {
        /// The end of its time; ISO 8601.
        #[schemars(with = "String")]
        until: Moment,
        /// What is missing; clients read it in the message.
        #[serde(skip)]
        reason: String,
    },
    /// A version of the operating system that is being installed next to the running one.
    #[display("version {version} of the operating system is being installed: {percent} %")]
    OsStaging {
        /// The version.
        version: OsVersion,
        /// Its progress.
        percent: u8,
    },
    /// The version of the operating system runs, and has not been found healthy yet.
    #[display("version {version} of the operating system is on trial: {reason}")]
    OsOnTrial {
        /// The version.
        version: OsVersion,
        /// The end of its time; ISO 8601.
        #[schemars(with = "String")]
        until: Moment,
        /// What is missing; clients read it in the message.
        #[serde(skip)]
        reason: String,
    },
    /// The version of the operating system that the target names was tried and is not tried again.
    #[display("version {version} of the operating system is not tried again: {reason}")]
    OsRejected {
        /// The version.
        version: OsVersion,
        /// What was wrong; clients read it in the message.
        #[serde(skip)]
        reason: String,
    },
    /// The target names a version of the operating system, but no plugin of this device updates it.
    #[display(
        "no plugin of this device updates its operating system to version {version}: docs/os-update.md says how to add one"
    )]
    OsUnavailable {
        /// The version.
        version: OsVersion,
    },
    /// The device is in local mode, and the app belongs to the cloud's target.
    #[display("the device is in local mode, and the app belongs to the cloud's target")]
    LocalMode,
    /// The service was stopped over the API.
    #[display("it was stopped over the API, and stays stopped until it is started over the API")]
    StoppedByUser,
    /// The next update: the step is not worth an update of its own.
    #[display(
        "the service gets its new API key with the next update, which `POST /v1/update` begins"
    )]
    NextUpdate,
}
