//! Data in calls and answers. Each type corresponds to one in `wit/`, which contains the guarantees.

use serde::{Deserialize, Serialize};

/// An object of the host that one instance holds: an LED, update locks, a reader of the journal. It means nothing to
/// any other instance, and is released together with its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Handle(pub u64);

/// The device's identity (`wit/device.wit`).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    /// 32 lower-case hexadecimal digits.
    pub uuid: String,
    /// The latest known name; `local` before there is one.
    pub name: String,
    /// For example `raspberrypi4-64`; `unknown` if the host does not say. Plugins for other boards are not loaded.
    pub device_type: String,
    /// For example `aarch64`; `unknown` if the host does not say.
    pub arch: String,
}

/// A unit's state in the words of the service manager (`wit/units.wit`).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnitState {
    /// `loaded`, `not-found`, ...
    pub load_state: String,
    /// `active`, `inactive`, ...
    pub active_state: String,
    /// `running`, `dead`, ...
    pub sub_state: String,
}

/// Options of the journal command (`wit/journal.wit`).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct JournalOptions {
    /// All fields in full.
    pub all: bool,
    /// Continue with entries that are logged later.
    pub follow: bool,
    /// Only this unit.
    pub unit: Option<String>,
    /// Only this syslog identifier.
    pub identifier: Option<String>,
    /// Only this many of the newest entries.
    pub count: Option<u64>,
    /// Not older than this.
    pub since: Option<String>,
    /// Not newer than this.
    pub until: Option<String>,
    /// The output format.
    pub format: Option<String>,
}

/// The next piece of a stream. The reader requests one at a time, which provides back-pressure.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Piece {
    /// At least one byte.
    Bytes(Vec<u8>),
    /// The stream has ended.
    End,
    /// It broke off; the host's log says why.
    Broken,
}

/// An LED that was opened (`wit/led.wit`).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OpenLed {
    /// The handle for setting it.
    pub light: Handle,
    /// Its highest brightness.
    pub max: u32,
}

/// A request to another host (`wit/http.wit`).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HttpRequest {
    /// Such as `GET`.
    pub method: String,
    /// With scheme and host.
    pub url: String,
    /// Names and values.
    #[serde(with = "crate::bounded_list")]
    pub headers: Vec<(String, Vec<u8>)>,
    /// May be empty.
    pub body: Vec<u8>,
}

/// The answer to it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HttpResponse {
    /// Such as 200.
    pub status: u16,
    /// Names, in lower case, and values.
    pub headers: Vec<(String, Vec<u8>)>,
    /// All of it.
    pub body: Vec<u8>,
}

/// A request to the device's own API (`wit/api.wit`).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ApiRequest {
    /// Such as `GET`.
    pub method: String,
    /// With the query.
    pub path: String,
    /// The body's type.
    pub content_type: Option<String>,
    /// May be empty.
    pub body: Vec<u8>,
}

/// The answer to it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ApiResponse {
    /// Such as 200.
    pub status: u16,
    /// The body's type.
    pub content_type: Option<String>,
    /// All of it.
    pub body: Vec<u8>,
}

/// A method on the system bus, with its arguments (`wit/dbus.wit`).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DbusMethodCall {
    /// The service's name on the bus.
    pub service: String,
    /// The object.
    pub path: String,
    /// The method's interface.
    pub interface: String,
    /// The method.
    pub member: String,
    /// The types of the arguments.
    pub signature: String,
    /// A JSON array.
    pub arguments: String,
}

/// The value of a field in the device's report (`wit/report.wit`).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the names say it")]
pub enum FieldValue {
    Text(String),
    Number(f64),
    Boolean(bool),
}

/// The settings of a serial port (`wit/serial.wit`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct SerialSettings {
    /// Bits per second.
    pub baud: u32,
    /// 5 to 8.
    pub data_bits: u8,
    /// The parity bit.
    pub parity: Parity,
    /// 1 or 2.
    pub stop_bits: u8,
}

/// The parity bit of a serial port.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the names say it")]
pub enum Parity {
    None,
    Even,
    Odd,
}

/// The edges of a GPIO line to wait for (`wit/gpio.wit`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the names say it")]
pub enum GpioEdge {
    Rising,
    Falling,
    Both,
}

/// An edge of a GPIO line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct GpioEdgeEvent {
    /// Whether the line switched on.
    pub is_rising: bool,
    /// The time, on a clock that only goes forward.
    pub nanoseconds: u64,
    /// How many edges were lost before this one.
    pub lost: u32,
}

/// An operation on a chip on an I2C bus (`wit/i2c.wit`).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the names are those of `wit/i2c.wit`")]
pub enum I2cOperation {
    WriteRead { bytes: Vec<u8>, read_length: u32 },
    ReadByte { register: u8 },
    ReadWord { register: u8 },
    WriteByte { register: u8, value: u8 },
    WriteWord { register: u8, value: u16 },
}

/// The difference between a boot configuration and the requested settings.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct BootComparison {
    /// The settings that differ, by name.
    #[serde(with = "crate::bounded_list")]
    pub changes: Vec<String>,
    /// Settings that cannot be written, and why. While there are any, nothing is written.
    #[serde(with = "crate::bounded_list")]
    pub refused: Vec<(String, String)>,
    /// Settings that have no meaning on this board.
    #[serde(with = "crate::bounded_list")]
    pub foreign: Vec<String>,
    /// The changes take effect with the next boot.
    pub needs_reboot: bool,
}
