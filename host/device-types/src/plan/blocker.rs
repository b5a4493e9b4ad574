//! What is in the way of a step.

use std::fmt;

use model::{AppId, EngineKind, ImageRef, ServiceName};
use schemars::JsonSchema;
use serde::Serialize;

use crate::Moment;

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
