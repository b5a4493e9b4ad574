//! A target state in its wire format, checked and typed: what a device should run, before compose
//! fields are interpreted.
//!
//! The reconciler parses one from the local interface ([`TargetState::from_local_json`]) or from
//! the cloud ([`TargetState::from_cloud_json`]) and passes it to [`crate::compose::resolve`].
//! Parsing lists every problem rather than only the first, and accepts a state completely or not at
//! all. Compose fields are kept unchanged: their values are checked where they are interpreted.

mod cloud;
mod fields;
mod local;
mod problems;
mod set_target_error;

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use crate::{AppId, AppUuid, Commit, ImageId, ImageRef, ReleaseId, ServiceId, ServiceName};

pub use local::LocalDefaults;
pub(crate) use problems::{Path, Problems};
pub use problems::{Problem, TargetErrors};
pub use set_target_error::{RefusedTarget, SetTargetError};

/// The maximum number of apps in one target. No device runs nearly as many; the limit keeps a
/// hostile state from filling memory.
pub const MAX_APPS: usize = 256;
/// The maximum number of services, volumes or networks in one release.
pub const MAX_PER_RELEASE: usize = 512;

/// The target state of the device.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TargetState {
    /// The device's name.
    pub name: String,
    /// Configuration variables without their prefix (`SUPERVISOR_POLL_INTERVAL`), as received:
    /// unknown keys are dropped, values are not yet interpreted ([`crate::config_variables`]).
    pub config: BTreeMap<String, String>,
    /// Apps by uuid, at most [`MAX_APPS`].
    pub apps: BTreeMap<AppUuid, TargetApp>,
}

/// One app of a target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TargetApp {
    /// The app's number.
    pub id: AppId,
    /// The app's uuid; in a local target its number in digits (docs/spec/device.md#target-local).
    pub uuid: AppUuid,
    /// The app's name, for people; also in the environment of its services.
    pub name: String,
    /// `fleet` if the target does not set it; always `fleet` in a local target.
    pub class: AppClass,
    /// Whether it is the host's operating system: shown, never run. Always `false` in a local target.
    pub is_host: bool,
    /// The release; an app without one has no services.
    pub release: Option<TargetRelease>,
}

/// The role of an app on a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash)]
pub enum AppClass {
    /// The one app that the device belongs to.
    #[default]
    Fleet,
    /// An app that the device runs in addition to its fleet.
    App,
    /// An app from which others are built.
    Block,
}

/// The one release of an app that is used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TargetRelease {
    /// The release's number.
    pub id: ReleaseId,
    /// The release's commit.
    pub commit: Commit,
    /// Services by name, at most [`MAX_PER_RELEASE`].
    pub services: BTreeMap<ServiceName, TargetService>,
    /// Definitions by name, not yet interpreted.
    pub volumes: BTreeMap<String, Map<String, Value>>,
    /// Definitions by name, not yet interpreted.
    pub networks: BTreeMap<String, Map<String, Value>>,
    /// The statement that the release's owner signed, as the cloud stores it; always absent in a local target.
    pub signed_statement: Option<String>,
}

/// One service of a release.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TargetService {
    /// The name in the release, unique there.
    pub name: ServiceName,
    /// The service's number.
    pub id: ServiceId,
    /// The image's number.
    pub image_id: ImageId,
    /// The image's reference, by tag or digest.
    pub image: ImageRef,
    /// Whether the service should run; `false` keeps a stopped container.
    pub running: bool,
    /// The target's own variables, which take precedence over those in `composition`.
    pub environment: BTreeMap<String, String>,
    /// The target's own labels, which take precedence over those in `composition`.
    pub labels: BTreeMap<String, String>,
    /// The contract, kept for `GET /v2/local/target-state`.
    pub contract: Option<Value>,
    /// Compose fields by their names in the target, in the order of the target.
    pub composition: Map<String, Value>,
}

#[cfg(test)]
mod tests;
