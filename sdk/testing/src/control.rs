//! What this crate and the tool say to each other.
//!
//! The tool is started as `supervisor-plugin harness SOCKET` and gets a [`Setup`] in one line of JSON on its standard
//! input, which stays open for as long as the device is to run. It answers one line of JSON, a [`Started`], and then HTTP
//! on the socket: requests to [`DEVICE`] are for the plugins, requests to [`HARNESS`] have a [`Command`] as their body.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::events::{InstalledRelease, PendingUpdate, PluginEvent};

/// Counts changes of what is here that one side has to know of.
pub const VERSION: u32 = 2;
/// The host of requests for plugins.
pub const DEVICE: &str = "device";
/// The host of commands.
pub const HARNESS: &str = "harness";
/// The header in which a request says for whom it is made, as JSON; no plugin sees it.
pub const CALLER: &str = "supervisor-testing-caller";

/// Rows of a kind of record.
pub(crate) type Rows = Vec<Map<String, Value>>;

/// What the device has.
#[derive(Debug, Serialize, Deserialize)]
pub struct Setup {
    /// [`VERSION`] of whoever wrote this.
    pub version: u32,
    /// The components.
    pub plugins: Vec<PathBuf>,
    /// The text of `policy.toml`.
    pub policy: String,
    /// The text of the supervisor's configuration file.
    pub configuration: String,
    /// Who the device is.
    pub identity: Identity,
    /// What `GET /v1/device` answers.
    pub state: Value,
    /// Name, brightness and the greatest brightness of each LED.
    pub leds: Vec<(String, u32, u32)>,
    /// Name, and systemd's words for load, active and sub state.
    pub units: Vec<[String; 4]>,
    /// Service, path, interface and member of methods on the system bus, and the values that they answer.
    pub dbus: Vec<([String; 4], String)>,
    /// Name of each GPIO line, and whether it is on.
    pub gpio: Vec<(String, bool)>,
    /// Bus, address and first registers of each chip on an I2C bus.
    pub i2c: Vec<(String, u8, Vec<u8>)>,
    /// Content by path.
    pub files: Vec<(String, Vec<u8>)>,
    /// Method and address, status and body.
    pub http: Vec<(String, u16, Vec<u8>)>,
    /// Method and path, status and body.
    pub api: Vec<(String, u16, Vec<u8>)>,
    /// In place of `journalctl`.
    pub journal_program: Option<PathBuf>,
    /// The rows of each kind of record; without it the device has no cloud.
    pub cloud: Option<Vec<(String, Rows)>>,
    /// Whether the policy alone pins files.
    pub pinned_by_policy: bool,
    /// Whether failures are answered as in developer mode.
    pub developer_mode: bool,
}

/// How the tool has started.
#[derive(Debug, Serialize, Deserialize)]
pub enum Started {
    /// The plugins are loaded.
    Ready {
        /// The root folder of the device's files.
        root: PathBuf,
    },
    /// Why they are not.
    Failed(String),
}

/// Who a device is.
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

/// For whom a request is made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum CallerScope {
    /// Whoever has the device's own key.
    DeviceKey,
    /// Whoever needs no key in local mode.
    LocalMode,
    /// Whoever has the key of a service.
    Service {
        /// The app's number.
        app_id: u64,
        /// The service's name.
        service: String,
    },
}

/// Something that is asked of the device, beside requests to plugins.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Command {
    /// Show which device it is.
    Identify,
    /// Something has happened.
    Publish(PluginEvent),
    /// May this update begin? Answers an optional `Postponement`.
    Postponement(PendingUpdate),
    /// Is this release healthy? Answers a `GateVerdict`.
    JudgeRelease(InstalledRelease),
    /// Answers the settings of the board's boot configuration, or why there are none.
    BootSettings,
    /// Compares the boot configuration with these settings, or writes them if the flag is set.
    BootConfig(Vec<BootSetting>, bool),
    /// Answers how the operating system stands, or why that is not known.
    OsStatus,
    /// Has the operating system updated: answers why it was not.
    UpdateOs(OsCall),
    /// The series and values that a plugin has reported.
    Metrics(String),
    /// What `GET /v3/plugins` would answer.
    Report,
    /// The units that were restarted.
    RestartedUnits,
    /// Holds an update lock with this message, or releases it.
    HoldUpdateLock(Option<String>),
    /// Answers [`UpdateLocks`].
    UpdateLocks,
    /// Answers an optional [`GpioState`]: none if there is no such line.
    GpioLine(String),
    /// Puts a GPIO line on or off. Answers whether there is such a line.
    DriveGpio(String, bool),
    /// Sets registers of the chip at this address of an I2C bus, from this one on. Answers whether there is such a chip.
    SetI2cRegisters(String, u8, u8, Vec<u8>),
    /// Answers a register of a chip on an I2C bus; none if there is no such chip.
    I2cRegister(String, u8, u8),
    /// Ends what runs in the background.
    Stop,
}

/// A setting of a boot configuration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BootSetting {
    /// Its key.
    pub name: String,
    /// Its text.
    pub value: String,
}

/// How a boot configuration stands to what is wanted of it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BootChange {
    /// The settings that differ.
    pub changes: Vec<String>,
    /// The settings that the plugin refuses, each with the reason.
    pub refused: Vec<(String, String)>,
    /// The settings that are not the plugin's.
    pub foreign: Vec<String>,
    /// Whether the changes act with the next boot.
    pub needs_reboot: bool,
}

/// How an operating system with two places to boot from stands.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OsStatus {
    /// The version that runs.
    pub running: String,
    /// The version that is installed whole in the other place.
    pub staged: Option<String>,
    /// Whether the version that runs stays.
    pub committed: bool,
    /// Percent of an installation that is under way.
    pub installing: Option<u8>,
    /// Why the last installation failed.
    pub failure: Option<String>,
}

/// A function of the action `os-update`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum OsCall {
    /// Begins to install a version.
    Stage {
        /// Where the version is.
        source: String,
        /// The version.
        version: String,
    },
    /// Has the next boot start the staged version.
    Activate,
    /// Has each later boot start the version that runs.
    Commit,
    /// Has the next boot start what ran before the version that is not committed.
    RollBack,
}

/// How a GPIO line is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct GpioState {
    /// Whether it is on.
    pub is_on: bool,
    /// Whether a plugin waits for its edges.
    pub is_waited_for: bool,
}

/// What plugins have done with the update locks of all apps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct UpdateLocks {
    /// How often they took them.
    pub taken: usize,
    /// How often by force.
    pub forced: usize,
    /// Whether a plugin holds them now.
    pub are_held: bool,
}
