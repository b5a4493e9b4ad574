//! What the owner of the plugins provides for them: folders, policy, and the parts of the supervisor that capabilities
//! reach.

use std::path::PathBuf;
use std::sync::Arc;

use futures::future::BoxFuture;
use model::error_chain;
pub use plugin_protocol::{
    ApiError, ApiResponse, CloudRefusal, DEFAULT_SLOTS, DataError, HostNameError, HttpError,
    HttpResponse, Identity, LocksError,
};
use plugin_protocol::{GuestRuntime, Origin};
pub use store::{Condition, ValueChange};

/// Everything that [`crate::Plugins::start`] needs.
pub struct PluginsConfig {
    /// The folders whose `*.wasm` files are plugins. A missing folder contains none.
    pub plugin_dirs: Vec<PathBuf>,
    /// The policy file; nothing is granted if it does not exist.
    pub policy: PathBuf,
    /// The list of the plugins that the layout ships with; without the list there are none.
    pub stock_plugins: PathBuf,
    /// Whether files get what the policy grants to the names they claim without being pinned to them: for developers.
    pub allow_unpinned: bool,
    /// Where plugins run.
    pub runtime: Arc<dyn GuestRuntime>,
    /// Where compiled plugins are kept.
    pub cache: compiled_code::Cache,
    /// The supervisor's state folder; `leds/` in it stores what LEDs showed before a plugin took them, and
    /// `plugin-versions/` the versions that were in use from the plugin folders.
    pub state_dir: PathBuf,
    /// The host's root folder as this process sees it; LEDs are in its `sys/class/leds`.
    pub host_root: PathBuf,
    /// The table `[plugins]` of the configuration file: one table for each plugin, by name.
    pub plugin_config: toml::Table,
    /// What capabilities reach.
    pub services: HostServices,
    /// The routes of the host itself, which no plugin may claim: method (`*` for all) and pattern, for
    /// example `("GET", "/v2/applications/:appId/state")`.
    pub core_routes: Vec<(&'static str, &'static str)>,
    /// The memory of the board, in bytes: plugins together get a share of it.
    pub board_memory: u64,
}

/// The parts of the supervisor that capabilities reach.
pub struct HostServices {
    /// The small store that the capability `store` gives to each plugin.
    pub data: Arc<dyn PluginData>,
    /// What the capability `device` reads.
    pub device: Arc<dyn Device>,
    /// What the capability `cloud` reaches; [`NoCloud`] on a device without one.
    pub cloud: Arc<dyn Cloud>,
    /// What the capability `units` reaches.
    pub os: Arc<dyn os::HostOs>,
    /// The locks that the capability `update-lock` takes.
    pub locks: Arc<dyn AppLocks>,
    /// The name that the capability `host-name` reads and sets.
    pub host_name: Arc<dyn HostName>,
    /// The journal that the capability `journal` reads.
    pub journal: os::Journal,
    /// The client that sends requests for the capability `http`.
    pub http: Arc<dyn HttpClient>,
    /// The chips whose lines the capability `gpio` reads and switches.
    pub gpio: Arc<dyn os::GpioChips>,
    /// The buses for the transfers of the capability `i2c`.
    pub i2c: Arc<dyn os::I2cBuses>,
    /// The API that the capability `api` reaches.
    pub api: Arc<dyn DeviceApi>,
}

/// The device's own API.
pub trait DeviceApi: Send + Sync + 'static {
    /// Answers a request that the policy allows, with the rights of the caller on whose behalf the plugin is called.
    ///
    /// # Errors
    /// If there is no answer, or one that is too long.
    fn send(&self, call: PluginApiRequest) -> BoxFuture<'_, Result<ApiResponse, ApiError>>;
}

/// A request of a plugin to the device's own API.
#[derive(Debug, Clone)]
pub struct PluginApiRequest {
    /// The plugin's name.
    pub plugin: Arc<str>,
    /// Its address consists only of a path.
    pub request: http::Request<Vec<u8>>,
    /// The caller, and how many plugins wait for the request. A plugin that answers it is called with this origin if it
    /// is among the extensions of the request.
    pub origin: Origin,
    /// The longest body of the answer, in bytes.
    pub longest_answer: usize,
}

/// Sends requests to other hosts.
pub trait HttpClient: Send + Sync + 'static {
    /// Sends a request that the policy allows. Follows no redirect.
    ///
    /// # Errors
    /// If there is no answer, or one that is too long.
    fn send(&self, request: OutgoingRequest) -> BoxFuture<'_, Result<HttpResponse, HttpError>>;
}

/// A request of a plugin to another host.
#[derive(Debug, Clone)]
pub struct OutgoingRequest {
    /// The plugin's name.
    pub plugin: Arc<str>,
    /// With an absolute address.
    pub request: http::Request<Vec<u8>>,
    /// The addresses that the host's name may resolve to.
    pub reachable: AddressScope,
    /// The longest body of the answer, in bytes.
    pub longest_answer: usize,
}

/// The addresses that a request may go to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AddressScope {
    /// All but those of this device itself, such as loopback addresses: the name's owner decides where it leads.
    OtherMachines,
    /// All: the device's owner has named the address.
    Everything,
}

/// The supervisor's information about its device.
pub trait Device: Send + Sync + 'static {
    /// Returns the device's identity. Called often; cheap.
    fn identity(&self) -> Identity;
    /// Returns the object that `GET /v1/device` returns.
    fn state(&self) -> serde_json::Value;
    /// Returns whether the supervisor has started for the first time since the device booted.
    fn is_first_start(&self) -> bool {
        false
    }
    /// Called when a plugin has failed at a call through its own fault. Must not wait for anything.
    fn faulted(&self, plugin: &str, message: &str) {
        let _ = (plugin, message);
    }
}

/// The part of the device's cloud that plugins reach (`wit/cloud.wit`).
pub trait Cloud: Send + Sync + 'static {
    /// Returns this device's rows of a kind, with these fields. Both are still unchecked text.
    fn records<'a>(
        &'a self,
        kind: &'a str,
        fields: &'a [String],
    ) -> BoxFuture<'a, Result<Vec<serde_json::Value>, CloudRefusal>>;

    /// Keeps values, by name, until the cloud has accepted them.
    fn queue<'a>(
        &'a self,
        kind: &'a str,
        values: Vec<(String, String)>,
    ) -> BoxFuture<'a, Result<(), CloudRefusal>>;
}

/// The cloud of a device that does not have one.
pub struct NoCloud;

impl Cloud for NoCloud {
    fn records<'a>(
        &'a self,
        _: &'a str,
        _: &'a [String],
    ) -> BoxFuture<'a, Result<Vec<serde_json::Value>, CloudRefusal>> {
        Box::pin(std::future::ready(Err(CloudRefusal::Unmanaged)))
    }

    fn queue<'a>(
        &'a self,
        _: &'a str,
        _: Vec<(String, String)>,
    ) -> BoxFuture<'a, Result<(), CloudRefusal>> {
        Box::pin(std::future::ready(Err(CloudRefusal::Unmanaged)))
    }
}

/// The update locks of the device's apps (`wit/update-lock.wit`).
pub trait AppLocks: Send + Sync + 'static {
    /// Takes the locks of all apps, or none. Waits up to 10 s for other operations of the supervisor.
    ///
    /// # Errors
    /// If one is held, or cannot be taken.
    fn acquire_all(&self, force: bool) -> BoxFuture<'_, Result<HeldLocks, LocksError>>;
}

/// Update locks that are held until this is dropped, which may remove their files.
pub type HeldLocks = Box<dyn std::any::Any + Send>;

/// The host's name (`wit/host-name.wit`).
pub trait HostName: Send + Sync + 'static {
    /// Returns the name that the host starts with; `None` if it has none.
    ///
    /// # Errors
    /// If it cannot be read.
    fn get(&self) -> BoxFuture<'_, Result<Option<String>, HostNameError>>;
    /// Sets the host's name, for now and after a reboot.
    ///
    /// # Errors
    /// If it is not a name that a host can have, or the host does not accept it.
    fn set(&self, name: String) -> BoxFuture<'_, Result<(), HostNameError>>;
}

/// Each plugin's own small key-value store (`wit/store.wit` has its limits, which the implementation enforces). The
/// functions may block: they are only called where that delays nothing else.
pub trait PluginData: Send + Sync + 'static {
    /// Returns the value of `key`.
    ///
    /// # Errors
    /// If the store cannot be read.
    fn get(&self, plugin: &str, key: &str) -> Result<Option<Vec<u8>>, DataError>;
    /// Changes the value of `key`; the change is on the disk when this returns. Returns whether it was made: not if its
    /// condition did not hold.
    ///
    /// # Errors
    /// If a limit is exceeded, or the store cannot be read or written.
    fn change(&self, plugin: &str, key: &str, change: &ValueChange<'_>) -> Result<bool, DataError>;
    /// Removes `key` if it exists.
    ///
    /// # Errors
    /// If the store cannot be written.
    fn delete(&self, plugin: &str, key: &str) -> Result<(), DataError>;
    /// Returns the keys that begin with `prefix`, sorted.
    ///
    /// # Errors
    /// If the store cannot be read.
    fn keys(&self, plugin: &str, prefix: &str) -> Result<Vec<String>, DataError>;
    /// Counts the write of a small file next to the store, which the host makes for the plugin, as one of the plugin's
    /// writes. Without a limit on these, there is nothing to count.
    ///
    /// # Errors
    /// If the plugin may not write now: the reason, in words.
    fn take_write(&self, plugin: &str) -> Result<(), String> {
        let _ = plugin;
        Ok(())
    }
}

impl PluginData for store::Store {
    fn get(&self, plugin: &str, key: &str) -> Result<Option<Vec<u8>>, DataError> {
        self.plugin_get(plugin, key)
            .map_err(|error| data_error("read", plugin, error))
    }

    fn change(&self, plugin: &str, key: &str, change: &ValueChange<'_>) -> Result<bool, DataError> {
        self.plugin_change(plugin, key, change)
            .map_err(|error| data_error("change", plugin, error))
    }

    fn delete(&self, plugin: &str, key: &str) -> Result<(), DataError> {
        self.plugin_delete(plugin, key)
            .map_err(|error| data_error("delete", plugin, error))
    }

    fn keys(&self, plugin: &str, prefix: &str) -> Result<Vec<String>, DataError> {
        self.plugin_keys(plugin, prefix)
            .map_err(|error| data_error("list", plugin, error))
    }
}

/// Returns the error for a plugin, and logs the cause. `action` is a verb whose object is the plugin's data.
fn data_error(action: &str, plugin: &str, error: store::PluginDataError) -> DataError {
    match error {
        store::PluginDataError::TooLarge(what) => DataError::TooLarge(what),
        // The internal cause is for the log, and not for a plugin.
        store::PluginDataError::Store(error) => {
            tracing::error!(
                plugin,
                "failed to {action} the stored data of the plugin `{plugin}`: {}",
                error_chain(&error)
            );
            DataError::Other("the store failed".to_owned())
        }
    }
}
