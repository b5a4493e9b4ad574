//! The objects of an engine. Both engines answer in these types, and the planner reads nothing else.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use strum::Display;

use crate::{ContainerId, EngineImageId, ImageRef};

/// The label, below the branding's namespace, for the digest of the configuration that a container, volume or network
/// was created from. A target with another digest is a change.
pub const CONFIG_DIGEST_LABEL: &str = "config-digest";

/// The label, below the branding's namespace, of a container that is created in one boot and started in the next: the
/// boot in which it was created. It is not part of the compared configuration.
pub const BOOT_LABEL: &str = "made-in-boot";

/// The label, below the branding's namespace, for the number of seconds that a container has to stop. It is read when
/// its service is no longer in any target.
pub const STOP_GRACE_PERIOD_LABEL: &str = "stop-grace-period";

/// The label, below the branding's namespace, for the names of the services that a container's own depends on,
/// separated by commas. It is read when services are stopped, which happens in the reverse order of starting; by then
/// the target may differ.
pub const DEPENDS_ON_LABEL: &str = "depends-on";

/// The engines that exist.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    Display,
    JsonSchema,
)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
#[schemars(inline)]
pub enum EngineKind {
    /// A Docker Engine, over its API.
    Docker,
    /// The supervisor's own, for WebAssembly components.
    Wasm,
}

/// The states of a container, in the engine's terms (docs/spec/device.md#status-words).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ContainerState {
    /// The container was created and never started.
    Created,
    /// Its process runs.
    Running,
    /// Its processes are frozen; the supervisor never does that.
    Paused,
    /// It has ended, and its restart policy is about to start it again.
    Restarting,
    /// The engine is removing it.
    Removing,
    /// It has ended, and is not started again.
    Exited,
    /// The engine failed to remove it; it can only be removed again.
    Dead,
}

/// The result of a running container's own health check (docs/spec/device.md#health-of-services).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, Display)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum ContainerHealth {
    /// It was started a short while ago, and no check has counted yet.
    Starting,
    /// The last check passed.
    Healthy,
    /// As many checks in a row have failed as its `retries` say.
    Unhealthy,
}

/// One container, running or not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Container {
    /// The engine that has it.
    pub engine: EngineKind,
    /// The engine's id for it.
    pub id: ContainerId,
    /// The container's name, without the leading slash that Docker adds.
    pub name: String,
    /// All of its labels, the supervisor's and the release's.
    pub labels: BTreeMap<String, String>,
    /// The reference that it was created from, according to its configuration.
    pub image: String,
    /// The id of the image that it was created from, which does not change with a later pull of the same reference.
    pub image_id: EngineImageId,
    /// The last state that the engine reported.
    pub state: ContainerState,
    /// The exit code of the last run, once it has ended.
    pub exit_code: Option<i64>,
    /// The result of its health check; absent if it has none, or does not run.
    pub health: Option<ContainerHealth>,
    /// When it was created, in milliseconds since the epoch; whole seconds if the engine reports only those.
    pub created_at_ms: i64,
}

/// One image that an engine holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Image {
    /// The engine that holds it.
    pub engine: EngineKind,
    /// The engine's id for it.
    pub id: EngineImageId,
    /// All references to it, by tag and by digest.
    pub references: Vec<ImageRef>,
    /// Its size in bytes.
    pub size: u64,
}

/// One named volume.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Volume {
    /// The engine that has it.
    pub engine: EngineKind,
    /// The engine's name for it; the supervisor's are `<appId>_<name>`.
    pub name: String,
    /// All of its labels, the supervisor's and the release's.
    pub labels: BTreeMap<String, String>,
}

/// One network.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Network {
    /// The engine that has it.
    pub engine: EngineKind,
    /// The engine's id for it.
    pub id: String,
    /// The engine's name for it; the supervisor's are `<appUuid>_<name>`.
    pub name: String,
    /// All of its labels, the supervisor's and the release's.
    pub labels: BTreeMap<String, String>,
}
