//! What the owner of the plugins gives them: folders, policy, and the parts of the supervisor that
//! capabilities reach.

use std::path::PathBuf;
use std::sync::Arc;

use futures::future::BoxFuture;
pub use plugin_protocol::{
    ApiError, ApiResponse, CloudRefusal, DEFAULT_SLOTS, DataError, HostNameError, HttpError,
    HttpResponse, Identity, LocksError,
};
use plugin_protocol::{GuestRuntime, Origin};
pub use store::{Condition, ValueChange};

/// All that [`crate::Plugins::start`] needs.
pub struct PluginsConfig {
    /// The folders whose `*.wasm` files are plugins. One that is not there holds none.
    pub plugin_dirs: Vec<PathBuf>,
    /// The policy file; nothing is granted where it is not there.
    pub policy: PathBuf,
    /// The list of the plugins that the layout ships with; without it there are none.
    pub stock_plugins: PathBuf,
    /// Whether files get what the policy gives to the names that they claim without being pinned to them: for
    /// developers.
    pub allow_unpinned: bool,
    /// Where plugins run.
    pub runtime: Arc<dyn GuestRuntime>,
    /// Where compiled plugins are kept.
    pub cache: compiled_code::Cache,
    /// The supervisor's folder of state; `leds/` in it holds what LEDs showed before a plugin took them, and
    /// `plugin-versions/` what served from files of the plugin folders.
    pub state_dir: PathBuf,
    /// The host's root folder as this process sees it; LEDs are under its `sys/class/leds`.
    pub host_root: PathBuf,
    /// The table `[plugins]` of the configuration file: a table for each plugin, by name.
    pub plugin_config: toml::Table,
    /// What capabilities reach.
    pub services: HostServices,
    /// The routes of the host itself, which no plugin may claim: method (`*` for all) and pattern, for
    /// example `("GET", "/v2/applications/:appId/state")`.
    pub core_routes: Vec<(&'static str, &'static str)>,
    /// The memory of the board, in bytes: plugins together have a share of it.
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
    /// What the capability `update-lock` takes.
    pub locks: Arc<dyn AppLocks>,
    /// What the capability `host-name` reads and sets.
    pub host_name: Arc<dyn HostName>,
    /// What the capability `journal` reads.
    pub journal: os::Journal,
    /// What the capability `http` sends.
    pub http: Arc<dyn HttpClient>,
    /// What the capability `gpio` reads and switches.
    pub gpio: Arc<dyn os::GpioChips>,
    /// What the capability `i2c` transfers on.
    pub i2c: Arc<dyn os::I2cBuses>,
    /// What the capability `api` asks.
    pub api: Arc<dyn DeviceApi>,
}

/// The device's own API.
pub trait DeviceApi: Send + Sync + 'static {
    /// Answers a request that the policy allows, with the rights of whoever the plugin is called for.
    ///
    /// # Errors
    /// When there is no answer, or one that is too long.
    fn send(&self, call: PluginApiRequest) -> BoxFuture<'_, Result<ApiResponse, ApiError>>;
}

/// A request of a plugin to the device's own API.
#[derive(Debug, Clone)]
pub struct PluginApiRequest {
    /// With a path alone.
    pub request: http::Request<Vec<u8>>,
    /// For whom, and how many plugins wait for it. A plugin that answers it is called with this origin if it finds it
    /// among the extensions of the request.
    pub origin: Origin,
    /// The longest body of the answer, in bytes.
    pub longest_answer: usize,
}

/// Sends requests to other hosts.
pub trait HttpClient: Send + Sync + 'static {
    /// Sends a request that the policy allows. Follows no redirect.
    ///
    /// # Errors
    /// When there is no answer, or one that is too long.
    fn send(&self, request: OutgoingRequest) -> BoxFuture<'_, Result<HttpResponse, HttpError>>;
}

/// A request of a plugin to another host.
#[derive(Debug, Clone)]
pub struct OutgoingRequest {
    /// With an absolute address.
    pub request: http::Request<Vec<u8>>,
    /// Which addresses the name of the host may have.
    pub reachable: Reachable,
    /// The longest body of the answer, in bytes.
    pub longest_answer: usize,
}

/// Which addresses a request may go to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reachable {
    /// Not to those of this device itself, such as loopback addresses: the name's owner decides where it leads.
    OtherMachines,
    /// To all: the device's owner has named the address.
    Everything,
}

/// What the supervisor knows of its device.
pub trait Device: Send + Sync + 'static {
    /// Who the device is. Called often; cheap.
    fn identity(&self) -> Identity;
    /// The object that `GET /v1/device` answers.
    fn state(&self) -> serde_json::Value;
    /// Whether the supervisor has started for the first time since the device booted.
    fn is_first_start(&self) -> bool {
        false
    }
    /// Told that a plugin failed at a call through its own fault. Must not wait for anything.
    fn faulted(&self, plugin: &str, message: &str) {
        let _ = (plugin, message);
    }
}

/// The device's cloud, as far as plugins reach it (`wit/cloud.wit`).
pub trait Cloud: Send + Sync + 'static {
    /// This device's rows of a kind, with these fields. Neither is more than text yet.
    fn records<'a>(
        &'a self,
        kind: &'a str,
        fields: &'a [String],
    ) -> BoxFuture<'a, Result<Vec<serde_json::Value>, CloudRefusal>>;

    /// Keeps values, by name, until the cloud has taken them.
    fn queue<'a>(
        &'a self,
        kind: &'a str,
        values: Vec<(String, String)>,
    ) -> BoxFuture<'a, Result<(), CloudRefusal>>;
}

/// The cloud of a device that has none.
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
    /// Takes those of all apps, or none. Waits up to 10 s for other operations of the supervisor.
    ///
    /// # Errors
    /// When one is held, or cannot be taken.
    fn acquire_all(&self, force: bool) -> BoxFuture<'_, Result<HeldLocks, LocksError>>;
}

/// Update locks that are held until this is dropped, which may remove their files.
pub type HeldLocks = Box<dyn std::any::Any + Send>;

/// The host's name (`wit/host-name.wit`).
pub trait HostName: Send + Sync + 'static {
    /// The name by which the host starts; none where it has none.
    ///
    /// # Errors
    /// When it cannot be read.
    fn get(&self) -> BoxFuture<'_, Result<Option<String>, HostNameError>>;
    /// Names the host, now and after a reboot.
    ///
    /// # Errors
    /// When it is none that a host can have, or the host does not take it.
    fn set(&self, name: String) -> BoxFuture<'_, Result<(), HostNameError>>;
}

/// Each plugin's own small key-value store (`wit/store.wit` has its limits, which the implementation
/// keeps). The functions may block: they are called where that holds up no one.
pub trait PluginData: Send + Sync + 'static {
    /// The value of `key`.
    ///
    /// # Errors
    /// When the store cannot be read.
    fn get(&self, plugin: &str, key: &str) -> Result<Option<Vec<u8>>, DataError>;
    /// Changes what `key` holds; the change is on the disk when it returns. Answers whether it was made: not if its
    /// condition did not hold.
    ///
    /// # Errors
    /// When a limit is exceeded, or the store cannot be read or written.
    fn change(&self, plugin: &str, key: &str, change: &ValueChange<'_>) -> Result<bool, DataError>;
    /// Removes `key`, if it is there.
    ///
    /// # Errors
    /// When the store cannot be written.
    fn delete(&self, plugin: &str, key: &str) -> Result<(), DataError>;
    /// The keys that begin with `prefix`, sorted.
    ///
    /// # Errors
    /// When the store cannot be read.
    fn keys(&self, plugin: &str, prefix: &str) -> Result<Vec<String>, DataError>;
}

impl PluginData for store::Store {
    fn get(&self, plugin: &str, key: &str) -> Result<Option<Vec<u8>>, DataError> {
        self.plugin_get(plugin, key).map_err(data_error)
    }

    fn change(&self, plugin: &str, key: &str, change: &ValueChange<'_>) -> Result<bool, DataError> {
        self.plugin_change(plugin, key, change).map_err(data_error)
    }

    fn delete(&self, plugin: &str, key: &str) -> Result<(), DataError> {
        self.plugin_delete(plugin, key).map_err(data_error)
    }

    fn keys(&self, plugin: &str, prefix: &str) -> Result<Vec<String>, DataError> {
        self.plugin_keys(plugin, prefix).map_err(data_error)
    }
}

fn data_error(error: store::PluginDataError) -> DataError {
    match error {
        store::PluginDataError::TooLarge(what) => DataError::TooLarge(what),
        // What failed inside is for the log, and not for a plugin.
        store::PluginDataError::Store(error) => {
            tracing::error!("a plugin's data: {error}");
            DataError::Other("the store failed".to_owned())
        }
    }
}
