//! The protocol between this crate and the tool.
//!
//! The tool is started as `supervisor-plugin harness SOCKET` and receives a [`Setup`] as one line of JSON on its
//! standard input, which stays open as long as the device is needed. It answers with one line of JSON, a [`StartOutcome`],
//! and then serves HTTP on the socket: requests to [`DEVICE`] are for the plugins, requests to [`HARNESS`] have a
//! [`Command`] as their body.

use std::path::PathBuf;
use std::time::Duration;

use plugin_values::{BootSetting, InstalledRelease, OsCall, PendingUpdate, PluginEvent, ProxyCall};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The version of the protocol; raised by each change here that matters to the other side.
pub const VERSION: u32 = 4;
/// The host name of requests for plugins.
pub const DEVICE: &str = "device";
/// The host name of commands.
pub const HARNESS: &str = "harness";
/// The header that names, as JSON, the caller that a request is made for; plugins do not see it.
pub const CALLER: &str = "supervisor-testing-caller";

/// Rows of a kind of record.
pub(crate) type Rows = Vec<Map<String, Value>>;

/// The device to start.
#[derive(Debug, Serialize, Deserialize)]
pub struct Setup {
    /// The [`VERSION`] of the writer.
    pub version: u32,
    /// The components.
    pub plugins: Vec<PathBuf>,
    /// The text of `policy.toml`.
    pub policy: String,
    /// The text of the supervisor's configuration file.
    pub configuration: String,
    /// The device's identity.
    pub identity: Identity,
    /// The answer to `GET /v1/device`.
    pub state: Value,
    /// Name, brightness and maximum brightness of each LED.
    pub leds: Vec<(String, u32, u32)>,
    /// Each unit's name, and systemd's words for its load, active and sub state.
    pub units: Vec<[String; 4]>,
    /// Methods on the system bus.
    pub dbus: Vec<DbusMethod>,
    /// Each GPIO line's name, and whether the line is on.
    pub gpio: Vec<(String, bool)>,
    /// Bus, address and first registers of each chip on an I2C bus.
    pub i2c: Vec<(String, u8, Vec<u8>)>,
    /// The content of files, by path.
    pub files: Vec<(String, Vec<u8>)>,
    /// Requests to other hosts.
    pub http: Vec<HttpExchange>,
    /// Answers of the device's API: method and path, status and body.
    pub api: Vec<(String, u16, Vec<u8>)>,
    /// The program that replaces `journalctl`.
    pub journal_program: Option<PathBuf>,
    /// The rows of each kind of record; if missing, the device has no cloud.
    pub cloud: Option<Vec<(String, Rows)>>,
    /// Whether only the policy pins files.
    pub pinned_by_policy: bool,
    /// Whether failures are answered as in developer mode.
    pub developer_mode: bool,
}

/// A method on the system bus.
#[derive(Debug, Serialize, Deserialize)]
pub struct DbusMethod {
    /// Its service, path, interface and member.
    pub names: [String; 4],
    /// The values that it returns, or the name and the message of its error.
    pub answer: Result<String, [String; 2]>,
}

/// A request to another host.
#[derive(Debug, Serialize, Deserialize)]
pub struct HttpExchange {
    /// Its method and address.
    pub request: String,
    /// How long the plugin waits for the outcome.
    pub delay: Duration,
    /// Status and body of the answer, or the error.
    pub outcome: Result<(u16, Vec<u8>), HttpError>,
}

/// Why another host has no answer: an error of the capability `http`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum HttpError {
    /// There was no answer.
    Unreachable(String),
    /// The answer is too long.
    TooLarge(String),
}

/// The outcome of the tool's start.
#[derive(Debug, Serialize, Deserialize)]
pub enum StartOutcome {
    /// The plugins are loaded.
    Ready {
        /// The root folder of the device's files.
        root: PathBuf,
    },
    /// The plugins are not loaded, for this reason.
    Failed(String),
}

/// The identity of a device.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    /// 32 lower-case hexadecimal digits.
    pub uuid: String,
    /// Its name.
    pub name: String,
    /// For example `raspberrypi4-64`. Plugins for other boards are not loaded.
    pub device_type: String,
    /// For example `aarch64`.
    pub arch: String,
}

impl Default for Identity {
    fn default() -> Self {
        Identity {
            uuid: "0".repeat(32),
            name: "local".to_owned(),
            device_type: "unknown".to_owned(),
            arch: "unknown".to_owned(),
        }
    }
}

/// The caller that a request is made for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum CallerScope {
    /// A caller with the device's own key.
    DeviceKey,
    /// A caller that needs no key, in local mode.
    LocalMode,
    /// A caller with the key of a service.
    Service {
        /// The app's number.
        app_id: u64,
        /// The service's name.
        service: String,
    },
}

/// A request to the device other than one to its plugins.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Command {
    /// Makes the device identify itself.
    Identify,
    /// Publishes an event.
    Publish(PluginEvent),
    /// May this update begin? The answer is an optional `Postponement`.
    Postponement(PendingUpdate),
    /// Is this release healthy? The answer is a `GateVerdict`.
    JudgeRelease(InstalledRelease),
    /// Reads the settings of the board's boot configuration. The answer is the settings, or why there are none.
    BootSettings,
    /// Compares the boot configuration with these settings, or writes them if the flag is set.
    BootConfig(Vec<BootSetting>, bool),
    /// Reads the status of the operating system. The answer is the status, or why it is not known.
    OsStatus,
    /// Updates the operating system. If this fails, the answer is the reason.
    UpdateOs(OsCall),
    /// Calls a function of `proxy-redirector`. The answer is that of the function, or a
    /// [`ProxyError`](plugin_values::ProxyError).
    ProxyRedirector(ProxyCall),
    /// Reads the series and values that a plugin has reported.
    Metrics(String),
    /// Reads the answer to `GET /v3/plugins`.
    Report,
    /// Reads which units were restarted.
    RestartedUnits,
    /// Holds an update lock with this message, or releases it.
    HoldUpdateLock(Option<String>),
    /// Reads [`UpdateLocks`].
    UpdateLocks,
    /// Reads an optional [`GpioState`]: `None` if there is no such line.
    GpioLine(String),
    /// Switches a GPIO line on or off. The answer is whether there is such a line.
    DriveGpio(String, bool),
    /// Sets registers of the chip at this address of an I2C bus, starting at this one. The answer is whether there is
    /// such a chip.
    SetI2cRegisters(String, u8, u8, Vec<u8>),
    /// Reads a register of a chip on an I2C bus; the answer is `None` if there is no such chip.
    I2cRegister(String, u8, u8),
    /// Stops everything that runs in the background.
    Stop,
}

/// The state of a GPIO line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct GpioState {
    /// Whether it is on.
    pub is_on: bool,
    /// Whether a plugin is waiting for its edges.
    pub is_waited_for: bool,
}

/// How plugins have used the update locks of all apps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct UpdateLocks {
    /// How often plugins took them.
    #[serde(rename = "taken")]
    pub times: usize,
    /// How often they did so by force.
    pub forced: usize,
    /// Whether a plugin holds them now.
    pub are_held: bool,
}
