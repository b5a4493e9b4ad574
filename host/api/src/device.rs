//! The interface of the API to the rest of the supervisor: two small traits. The binary implements them with the
//! reconciler and the plugin host; tests implement them with plain values.

use std::collections::BTreeMap;
use std::sync::Arc;

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

use crate::caller::Requester;
use crate::events::Events;
use crate::message::{Request, Response};

/// The device itself: its state, its target, its services' output.
pub trait Device: Send + Sync + 'static {
    /// Returns the last published state. It comes from memory, since every state endpoint is built from it.
    fn status(&self) -> Arc<DeviceStatus>;

    /// Returns addresses and versions; the same `Arc` as long as nothing has changed.
    fn facts(&self) -> Arc<Facts>;

    /// Returns whether the device accepts its target over HTTP rather than from a cloud
    /// (docs/spec/device.md#local-mode).
    fn local_mode(&self) -> bool;

    /// Returns further names by which clients may call the device, in addition to `localhost`, in lower case; each also
    /// stands for its `.local` form.
    fn host_names(&self) -> Vec<String>;

    /// Returns the object `{ "local": … }` of `GET /v2/local/target-state`.
    fn local_target(&self) -> Value;

    /// Stores a new local target and starts to apply it; returns before it is applied, with one sentence for each part
    /// of it that will not be done.
    fn set_local_target(
        &self,
        target: Value,
        force: bool,
    ) -> BoxFuture<'_, Result<Vec<String>, SetTargetError>>;

    /// Carries out an action on services, independently of the target; returns when it is complete.
    fn act(&self, action: Action) -> BoxFuture<'_, Result<(), ActionError>>;

    /// Shuts down or reboots the host. Returns once all apps are locked and the host accepts requests;
    /// services are stopped and the host goes down after that.
    fn power(&self, action: PowerAction, force: bool) -> BoxFuture<'_, Result<(), ActionError>>;

    /// Removes volumes that nothing uses and no target names (docs/spec/device.md#cleanup-volumes).
    fn clean_up_volumes(&self) -> BoxFuture<'_, Result<(), String>>;

    /// Returns the environment with which a container was created.
    fn environment<'a>(
        &'a self,
        container: &'a ContainerId,
    ) -> BoxFuture<'a, Result<BTreeMap<String, String>, String>>;

    /// Handles that the API key of `owner` was replaced: once this returns, new containers of the owner get the new
    /// key; nothing is recreated for it before the next update (docs/spec/device.md#keys-regenerate).
    fn key_replaced(&self, owner: KeyOwner) -> BoxFuture<'_, ()>;

    /// Checks for a new target and applies it, or applies the known one again: `force` overrides update locks, `cancel`
    /// aborts what is being applied. Returns at once whether it will be done: not if the device's configuration leaves
    /// the time of updates to the device and `force` is not given.
    fn update(&self, force: bool, cancel: bool) -> bool;

    /// Returns the steps that would be taken, in order, and what blocks each; or why the plan is unknown.
    fn plan(&self) -> BoxFuture<'_, Result<DevicePlan, String>>;

    /// Lists the update locks that are held, with their holders.
    fn update_locks(&self) -> BoxFuture<'_, Result<Vec<UpdateLock>, String>>;

    /// Takes the update lock on behalf of a service, or renews it.
    fn lease_lock(&self, request: LockRequest) -> BoxFuture<'_, Result<UpdateLock, LockRefusal>>;

    /// Releases a lock that [`Device::lease_lock`] took.
    fn give_lock_back(
        &self,
        app: AppId,
        service: ServiceName,
    ) -> BoxFuture<'_, Result<(), LockRefusal>>;

    /// Returns the events of the device.
    fn events(&self) -> &Events;

    /// Returns the counters of the device.
    fn stats(&self) -> ReconcilerStats;

    /// Returns the confinement of processes that run foreign code.
    fn confinement(&self) -> BoxFuture<'_, Confinement>;

    /// Returns the problems of the device, one sentence each; empty if it is healthy (docs/spec/device.md#health).
    fn problems(&self) -> Vec<String>;

    /// Streams log lines from now on. A slow reader loses lines, and gets a system line about it.
    fn logs(&self) -> BoxStream<'static, Arc<LogEvent>>;
}

/// The endpoint families that are plugins.
pub trait Endpoints: Send + Sync + 'static {
    /// Returns problems that keep all plugins from working, one sentence each (docs/spec/device.md#health).
    fn problems(&self) -> Vec<String>;

    /// Returns whether plugins' files need not be pinned to their names: the device belongs to a developer.
    fn allow_unpinned(&self) -> bool;

    /// Returns what is wrong with the policy, and what is in force instead.
    fn policy_error(&self) -> Option<String>;

    /// Waits until `report` and `routes` list every plugin, loaded or not yet, or until a time limit.
    fn wait_until_listed(&self) -> BoxFuture<'_, ()>;

    /// Waits until `find` returns anything but [`EndpointMatch::Loading`], or until a time limit.
    fn wait_until_served<'a>(&'a self, method: &'a Method, path: &'a str) -> BoxFuture<'a, ()>;

    /// Finds the route for `method` on `path` (as received, without the query). Routes for GET also answer HEAD.
    fn find(&self, method: &Method, path: &str) -> EndpointMatch;

    /// Makes the device identify itself for 15 s, or continues to; returns at once.
    fn identify(&self, requester: Requester);

    /// Returns the list of `GET /v3/plugins`.
    fn report(&self) -> Vec<PluginReport>;

    /// Returns the last lines of a plugin after the line with this number; `None` if there is no such plugin.
    fn log(&self, plugin: &str, after: u64) -> Option<PluginLog>;

    /// Begins to install a plugin that a developer sends.
    fn begin_install<'a>(
        &'a self,
        plugin: &'a str,
    ) -> BoxFuture<'a, Result<Box<dyn PluginUpload>, InstallRefusal>>;

    /// Removes a plugin's file.
    fn uninstall<'a>(&'a self, plugin: &'a str) -> BoxFuture<'a, Result<(), InstallRefusal>>;

    /// Returns the statistics of each running plugin, sorted by name.
    fn stats(&self) -> Vec<PluginStats>;

    /// Returns the routes of the plugins that are loaded or being loaded, for `GET /v3/openapi.json`.
    fn routes(&self) -> Vec<PluginRoutes>;
}

/// The upload of a plugin's file; dropping it leaves everything unchanged.
pub trait PluginUpload: Send {
    /// Adds the next piece.
    fn write(&mut self, piece: Bytes) -> BoxFuture<'_, Result<(), InstallRefusal>>;

    /// Checks the file, moves it into place, and returns the result after a bounded wait.
    fn finish(self: Box<Self>) -> BoxFuture<'static, Result<PluginInstallation, InstallRefusal>>;
}

/// The match of a method and a path among the plugins' routes.
pub enum EndpointMatch {
    /// Called with the request, from which the caller's key has been taken.
    Route {
        /// The route's pattern, as in the plugin's manifest.
        pattern: String,
        /// Calls the plugin on behalf of the requester.
        call: Box<dyn FnOnce(Requester, Request) -> BoxFuture<'static, Response> + Send>,
    },
    /// The path is known, with these methods.
    OtherMethods(Vec<Method>),
    /// A plugin that is being loaded may answer it; a sentence says what is being waited for.
    Loading(String),
    /// No plugin has a route for the path.
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
