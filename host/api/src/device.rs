//! What the API asks of the rest of the supervisor, as two small traits. The binary implements them over
//! the reconciler and the plugin host; tests implement them over plain values.

use std::collections::BTreeMap;
use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use futures::future::BoxFuture;
use futures::stream::BoxStream;
use http::Method;
use model::{
    Action, ActionError, AppId, ContainerId, DeviceStatus, LockRefusal, LockRequest, PowerAction,
    ServiceName, UpdateLock,
};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use crate::events::Events;
use crate::moment::Moment;
use crate::v3::plan::DevicePlan;

/// A request as it came from a socket or a test.
pub type Request = http::Request<Body>;
/// An answer, its body in memory or streamed.
pub type Response = http::Response<Body>;

/// The device itself: its state, its target, its services' output.
pub trait Device: Send + Sync + 'static {
    /// The state as last published. Answered from memory, since every state endpoint is drawn from it.
    fn status(&self) -> Arc<DeviceStatus>;

    /// Addresses and versions; the same `Arc` for as long as nothing changed.
    fn facts(&self) -> Arc<Facts>;

    /// Whether the device takes its target over HTTP rather than from a cloud (device behaviour 4.3).
    fn local_mode(&self) -> bool;

    /// Names by which clients may call the device, beside `localhost`, in lower case; each also stands for its
    /// `.local`.
    fn host_names(&self) -> Vec<String>;

    /// The object `{ "local": … }` of `GET /v2/local/target-state`.
    fn local_target(&self) -> Value;

    /// Stores a new local target and starts to apply it; answers before it is applied, with one
    /// sentence for each thing in it that will not be done.
    fn set_local_target(
        &self,
        target: Value,
        force: bool,
    ) -> BoxFuture<'_, Result<Vec<String>, SetTargetError>>;

    /// Does something with services beside the target; answers when it is done.
    fn act(&self, action: Action) -> BoxFuture<'_, Result<(), ActionError>>;

    /// Brings the host down, or up again: answers once all apps are locked and the host can be told to;
    /// services are stopped and the host goes down after that.
    fn power(&self, action: PowerAction, force: bool) -> BoxFuture<'_, Result<(), ActionError>>;

    /// Removes volumes that nothing uses and no target names (device behaviour 6.8).
    fn clean_up_volumes(&self) -> BoxFuture<'_, Result<(), String>>;

    /// The environment that a container was made with.
    fn environment<'a>(
        &'a self,
        container: &'a ContainerId,
    ) -> BoxFuture<'a, Result<BTreeMap<String, String>, String>>;

    /// Looks for a new target and applies it, or the one that is known again: `force` overrides update
    /// locks, `cancel` breaks off what is being applied. Answers at once whether it will be done: not where
    /// the device's configuration leaves updates to its own time and `force` is not given.
    fn update(&self, force: bool, cancel: bool) -> bool;

    /// What would change, in order, and what holds it up; why that cannot be said.
    fn plan(&self) -> BoxFuture<'_, Result<DevicePlan, String>>;

    /// Who holds which update lock now.
    fn update_locks(&self) -> BoxFuture<'_, Result<Vec<UpdateLock>, String>>;

    /// Takes the update lock of a service for it, or renews it.
    fn lease_lock(&self, request: LockRequest) -> BoxFuture<'_, Result<UpdateLock, LockRefusal>>;

    /// Gives back what [`Device::lease_lock`] took.
    fn give_lock_back(
        &self,
        app: AppId,
        service: ServiceName,
    ) -> BoxFuture<'_, Result<(), LockRefusal>>;

    /// What happens on the device.
    fn events(&self) -> &Events;

    /// What the device counts.
    fn tally(&self) -> DeviceTally;

    /// The walls around processes that run foreign code.
    fn confinement(&self) -> BoxFuture<'_, Confinement>;

    /// What is wrong with the device, one sentence each; nothing when it is healthy (6.7).
    fn problems(&self) -> Vec<String>;

    /// Lines from now on. A reader that is too slow loses lines and is told so by a system line.
    fn logs(&self) -> BoxStream<'static, LogEvent>;
}

/// The endpoint families that are plugins.
pub trait Endpoints: Send + Sync + 'static {
    /// What keeps plugins as a whole from working, one sentence each (device behaviour 6.7).
    fn problems(&self) -> Vec<String>;

    /// Whether plugins' files need not be pinned to their names: the device is a developer's.
    fn allow_unpinned(&self) -> bool;

    /// Waits until `report` and `routes` list every plugin, loaded or not yet, or that takes too long.
    fn listed(&self) -> BoxFuture<'_, ()>;

    /// Waits until `find` answers otherwise than [`Found::Loading`], or that takes too long.
    fn served<'a>(&'a self, method: &'a Method, path: &'a str) -> BoxFuture<'a, ()>;

    /// Who answers `method` on `path` (as it came, without the query).
    fn find(&self, method: &Method, path: &str) -> Found;

    /// Starts to show the device to a person for 15 s, or goes on doing so; returns at once.
    fn identify(&self, requester: Requester);

    /// The list of `GET /v3/plugins`.
    fn report(&self) -> Value;

    /// How each plugin that serves has fared, sorted by name.
    fn tallies(&self) -> Vec<PluginTally>;

    /// The routes of the plugins that are loaded or being loaded, for `GET /v3/openapi.json`.
    fn routes(&self) -> Vec<PluginRoutes>;
}

/// Who made a request, as plugins are told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Requester {
    /// Whoever has the device's own key.
    DeviceKey,
    /// Whoever needs no key, since the device is in local mode.
    LocalMode,
    /// Whoever has the key of this service.
    Service {
        /// The app that the key covers.
        app: AppId,
        /// Its service.
        service: ServiceName,
    },
}

/// What one plugin answers.
#[derive(Debug, Clone)]
pub struct PluginRoutes {
    /// Its name.
    pub plugin: String,
    /// Methods and patterns, `:name` for a segment of any text.
    pub routes: Vec<(Method, String)>,
    /// What the plugin says of them: a part of an OpenAPI document with `paths` and `components`. It comes
    /// from the plugin as it is.
    pub description: Option<Value>,
}

/// What plugins have for one method and path.
pub enum Found {
    /// Called with the request, from which the caller's key has been taken.
    Route {
        /// The route's pattern, as the plugin's manifest has it.
        pattern: String,
        /// Does it, for whoever made the request.
        call: Box<dyn FnOnce(Requester, Request) -> BoxFuture<'static, Response> + Send>,
    },
    /// The path is known, with these methods.
    OtherMethods(Vec<Method>),
    /// A plugin that is being loaded may answer it; what is waited for, in a sentence.
    Loading(String),
    /// Nobody knows the path.
    Nothing,
}

/// What the device counts, since the supervisor started.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DeviceTally {
    /// Comparisons of the device with its target.
    pub laps: u64,
    /// Steps that failed.
    pub step_failures: u64,
    /// When the target was last found reached.
    pub last_reached: Option<Moment>,
    /// Images that were downloaded.
    pub downloads: u64,
    /// Downloads that failed.
    pub download_failures: u64,
    /// Images that are downloaded now.
    pub downloads_running: u64,
    /// Services whose update locks the supervisor holds now.
    pub locks_held: u64,
}

/// How a plugin has fared since the supervisor started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PluginTally {
    /// Its name.
    pub name: String,
    /// Calls of it.
    pub calls: u64,
    /// Calls that failed through its fault.
    pub faults: u64,
    /// What all calls took, until their answer was there.
    pub time: Duration,
}

/// The walls around processes that run foreign code, beside the sandbox of WebAssembly.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Confinement {
    /// Whether the policy refuses to start such a process where a wall is missing.
    pub required: bool,
    /// The compiler as it last ran, the processes of plugins, and each service on the wasm engine that runs.
    pub processes: Vec<ConfinedProcess>,
}

/// One such process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ConfinedProcess {
    /// `compiler`, `plugins`, `plugins with` and their folders, or `service` with the name of its container.
    pub process: String,
    /// The walls that stand.
    pub in_force: Vec<String>,
    /// The walls that do not.
    pub missing: Vec<MissingWall>,
    /// Of the walls that stand, those that this system has a lower form of.
    pub lower: Vec<MissingWall>,
}

/// A wall that does not stand as it should.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct MissingWall {
    /// Which.
    pub wall: String,
    /// What the system lacks, or said.
    pub reason: String,
}

/// What the device knows of itself that changes rarely.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Facts {
    /// The port that the API listens on.
    pub api_port: u16,
    /// Of the host; space-separated, missing where there is none (device behaviour 6.6).
    pub ip_address: Option<String>,
    /// Of the host; space-separated, upper case.
    pub mac_address: Option<String>,
    /// `PRETTY_NAME` of the host.
    pub os_version: Option<String>,
}

/// Why a local target was not taken.
#[derive(Debug)]
pub enum SetTargetError {
    /// The device is not in local mode.
    NotLocalMode,
    /// The target is not valid; all problems, one a line.
    Invalid(String),
    /// It could not be stored.
    Failed(Box<dyn Error + Send + Sync>),
}

/// One line of `GET /v2/local/logs` (device behaviour 6.5).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LogEvent {
    /// The line, without its end.
    pub message: String,
    /// Milliseconds since the epoch; only the greeting has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timestamp: Option<i64>,
    /// Missing in a line of the supervisor's own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub service_name: Option<String>,
    /// The number of that service in the target.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub service_id: Option<u64>,
    /// Whether the service printed it to its standard error output.
    #[serde(rename = "isStdErr", skip_serializing_if = "is_false")]
    pub is_stderr: bool,
    /// Whether it is the supervisor that speaks.
    #[serde(skip_serializing_if = "is_false")]
    pub is_system: bool,
}

impl LogEvent {
    /// A line of the supervisor's own.
    #[must_use]
    pub fn system(message: impl Into<String>, timestamp: Option<i64>) -> Self {
        LogEvent {
            message: message.into(),
            timestamp,
            service_name: None,
            service_id: None,
            is_stderr: false,
            is_system: true,
        }
    }
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde calls it with a reference"
)]
fn is_false(value: &bool) -> bool {
    !*value
}
