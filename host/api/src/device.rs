//! What the API asks of the rest of the supervisor, as two small traits. The binary implements them over
//! the reconciler and the plugin host; tests implement them over plain values.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::body::Body;
use bytes::Bytes;
use device_types::{
    Confinement, DevicePlan, InstallRefusal, LogEvent, PluginInstallation, PluginLog, PluginReport,
    PluginRoutes, PluginStats, ReconcilerStats,
};
use futures::future::BoxFuture;
use futures::stream::BoxStream;
use http::Method;
use model::{
    Action, ActionError, AppId, ContainerId, DeviceStatus, LockRefusal, LockRequest, PowerAction,
    ServiceName, SetTargetError, UpdateLock,
};
use serde_json::Value;
use store::KeyOwner;

use crate::events::Events;

/// A request as it came from a socket or a test.
pub type Request = http::Request<Body>;
/// An answer, its body in memory or streamed.
pub type Response = http::Response<Body>;

/// The device itself: its state, its target, its services' output.
pub trait Device: Send + Sync + 'static {
    /// The last published state. Returned from memory, since every state endpoint is built from it.
    fn status(&self) -> Arc<DeviceStatus>;

    /// Returns addresses and versions; the same `Arc` as long as nothing has changed.
    fn facts(&self) -> Arc<Facts>;

    /// Whether the device takes its target over HTTP rather than from a cloud (docs/spec/device.md#local-mode).
    fn local_mode(&self) -> bool;

    /// Further names by which clients may call the device, besides `localhost`, in lower case; each also stands for its
    /// `.local`.
    fn host_names(&self) -> Vec<String>;

    /// The object `{ "local": … }` of `GET /v2/local/target-state`.
    fn local_target(&self) -> Value;

    /// Stores a new local target and starts to apply it; returns before it is applied, with one sentence for each
    /// thing in it that will not be done.
    fn set_local_target(
        &self,
        target: Value,
        force: bool,
    ) -> BoxFuture<'_, Result<Vec<String>, SetTargetError>>;

    /// Carries out an action on services, apart from the target; returns when it is complete.
    fn act(&self, action: Action) -> BoxFuture<'_, Result<(), ActionError>>;

    /// Shuts down or reboots the host. Returns once all apps are locked and the host accepts requests;
    /// services are stopped and the host goes down after that.
    fn power(&self, action: PowerAction, force: bool) -> BoxFuture<'_, Result<(), ActionError>>;

    /// Removes volumes that nothing uses and no target names (docs/spec/device.md#cleanup-volumes).
    fn clean_up_volumes(&self) -> BoxFuture<'_, Result<(), String>>;

    /// The environment with which a container was created.
    fn environment<'a>(
        &'a self,
        container: &'a ContainerId,
    ) -> BoxFuture<'a, Result<BTreeMap<String, String>, String>>;

    /// Takes note that the key of `owner` to the API was replaced: from the answer on, whatever makes the owner's
    /// container gives it the new one; nothing is made anew for it before the next update
    /// (docs/spec/device.md#keys-regenerate).
    fn key_replaced(&self, owner: KeyOwner) -> BoxFuture<'_, ()>;

    /// Checks for a new target and applies it, or applies the known one again: `force` overrides update
    /// locks, `cancel` breaks off what is being applied. Answers at once whether it will be done: not if
    /// the device's configuration leaves updates to its own time and `force` is not given.
    fn update(&self, force: bool, cancel: bool) -> bool;

    /// The steps that would be taken, in order, and what blocks each; or why the plan is unknown.
    fn plan(&self) -> BoxFuture<'_, Result<DevicePlan, String>>;

    /// Lists the update locks that are held, with their holders.
    fn update_locks(&self) -> BoxFuture<'_, Result<Vec<UpdateLock>, String>>;

    /// Takes the update lock of a service for it, or renews it.
    fn lease_lock(&self, request: LockRequest) -> BoxFuture<'_, Result<UpdateLock, LockRefusal>>;

    /// Releases a lock that [`Device::lease_lock`] took.
    fn give_lock_back(
        &self,
        app: AppId,
        service: ServiceName,
    ) -> BoxFuture<'_, Result<(), LockRefusal>>;

    /// The events of the device.
    fn events(&self) -> &Events;

    /// The counters of the device.
    fn stats(&self) -> ReconcilerStats;

    /// The walls around processes that run foreign code.
    fn confinement(&self) -> BoxFuture<'_, Confinement>;

    /// What is wrong with the device, one sentence each; nothing when it is healthy (docs/spec/device.md#health).
    fn problems(&self) -> Vec<String>;

    /// Streams log lines from now on. A slow reader loses lines, and gets a system line that says so.
    fn logs(&self) -> BoxStream<'static, Arc<LogEvent>>;
}

/// The endpoint families that are plugins.
pub trait Endpoints: Send + Sync + 'static {
    /// Problems that keep all plugins from working, one sentence each (docs/spec/device.md#health).
    fn problems(&self) -> Vec<String>;

    /// Whether plugins' files need not be pinned to their names: the device is a developer's.
    fn allow_unpinned(&self) -> bool;

    /// What is wrong with the policy, and what is in force instead.
    fn policy_error(&self) -> Option<String>;

    /// Waits until `report` and `routes` list every plugin, loaded or not yet, or that takes too long.
    fn listed(&self) -> BoxFuture<'_, ()>;

    /// Waits until `find` returns anything but [`EndpointMatch::Loading`], or that takes too long.
    fn served<'a>(&'a self, method: &'a Method, path: &'a str) -> BoxFuture<'a, ()>;

    /// Finds what answers `method` on `path` (as it arrived, without the query). What answers GET answers HEAD.
    fn find(&self, method: &Method, path: &str) -> EndpointMatch;

    /// Makes the device identify itself for 15 s, or continues to; returns at once.
    fn identify(&self, requester: Requester);

    /// The list of `GET /v3/plugins`.
    fn report(&self) -> Vec<PluginReport>;

    /// The last lines of a plugin after the one of this number; `None` if there is no such plugin.
    fn log(&self, plugin: &str, after: u64) -> Option<PluginLog>;

    /// Begins to install a plugin that a developer sends.
    fn begin_install<'a>(
        &'a self,
        plugin: &'a str,
    ) -> BoxFuture<'a, Result<Box<dyn PluginUpload>, InstallRefusal>>;

    /// Removes a plugin's file.
    fn uninstall<'a>(&'a self, plugin: &'a str) -> BoxFuture<'a, Result<(), InstallRefusal>>;

    /// The statistics of each plugin that serves, sorted by name.
    fn stats(&self) -> Vec<PluginStats>;

    /// The routes of the plugins that are loaded or being loaded, for `GET /v3/openapi.json`.
    fn routes(&self) -> Vec<PluginRoutes>;
}

/// A plugin's file that arrives; dropping it leaves everything as it was.
pub trait PluginUpload: Send {
    /// Adds what comes next.
    fn write(&mut self, piece: Bytes) -> BoxFuture<'_, Result<(), InstallRefusal>>;

    /// Checks the file, puts it into its place, and returns what became of it after a bounded wait.
    fn finish(self: Box<Self>) -> BoxFuture<'static, Result<PluginInstallation, InstallRefusal>>;
}

/// The maker of a request, as plugins see it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Requester {
    /// A client with the device's own key.
    DeviceKey,
    /// A client that needs no key, because the device is in local mode.
    LocalMode,
    /// A client with the key of this service.
    Service {
        /// The app that the key covers.
        app: AppId,
        /// The service's name.
        service: ServiceName,
    },
}

/// The match of a method and a path among the plugins' routes.
pub enum EndpointMatch {
    /// Called with the request, from which the caller's key has been taken.
    Route {
        /// The route's pattern, as the plugin's manifest has it.
        pattern: String,
        /// Calls the plugin on behalf of the requester.
        call: Box<dyn FnOnce(Requester, Request) -> BoxFuture<'static, Response> + Send>,
    },
    /// The path is known, with these methods.
    OtherMethods(Vec<Method>),
    /// A plugin that is being loaded may answer it; what is waited for, in a sentence.
    Loading(String),
    /// No plugin has the path.
    Nothing,
}

/// Facts about the device that change rarely.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Facts {
    /// The port that the API listens on.
    pub api_port: u16,
    /// The host's addresses, separated by spaces; absent if there is none (docs/spec/device.md#host-facts).
    pub ip_address: Option<String>,
    /// The host's hardware addresses, separated by spaces, in upper case.
    pub mac_address: Option<String>,
    /// `PRETTY_NAME` of the host.
    pub os_version: Option<String>,
}
