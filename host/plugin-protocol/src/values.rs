//! What calls carry and answers hold. Each type stands for one of `wit/`, where its promises are.

use serde::{Deserialize, Serialize};

/// Something of the host in the hands of one instance: an LED, update locks, a reader of the journal. Means
/// nothing to any other instance, and is let go with its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Handle(pub u64);

/// Who the device is (`wit/device.wit`).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    /// 32 lower-case hexadecimal digits.
    pub uuid: String,
    /// The latest name known; `local` before there is one.
    pub name: String,
    /// For example `raspberrypi4-64`; `unknown` where the host does not say. Plugins for other boards
    /// are not loaded.
    pub device_type: String,
    /// For example `aarch64`; `unknown` where the host does not say.
    pub arch: String,
}

/// The service manager's own words (`wit/units.wit`).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnitState {
    /// `loaded`, `not-found`, ...
    pub load_state: String,
    /// `active`, `inactive`, ...
    pub active_state: String,
    /// `running`, `dead`, ...
    pub sub_state: String,
}

/// What the journal command is to print (`wit/journal.wit`).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct JournalOptions {
    /// All fields in full.
    pub all: bool,
    /// Goes on with what is logged later.
    pub follow: bool,
    /// Only this unit.
    pub unit: Option<String>,
    /// Only this syslog identifier.
    pub identifier: Option<String>,
    /// Only the newest so many.
    pub count: Option<u64>,
    /// Not older than this.
    pub since: Option<String>,
    /// Not newer than this.
    pub until: Option<String>,
    /// How it is printed.
    pub format: Option<String>,
}

/// The next piece of a stream. Whoever reads asks for one at a time, which is the back-pressure.
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
    /// By this it is set.
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
    pub headers: Vec<(String, Vec<u8>)>,
    /// May be empty.
    pub body: Vec<u8>,
}

/// Its answer.
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
    /// Of the body.
    pub content_type: Option<String>,
    /// May be empty.
    pub body: Vec<u8>,
}

/// Its answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ApiResponse {
    /// Such as 200.
    pub status: u16,
    /// Of the body.
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

/// What a field of the device's report says (`wit/report.wit`).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the names say it")]
pub enum FieldValue {
    Text(String),
    Number(f64),
    Boolean(bool),
}

/// How a serial port is set (`wit/serial.wit`).
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

/// Which edges of a GPIO line are waited for (`wit/gpio.wit`).
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
    /// Whether the line went on.
    pub is_rising: bool,
    /// When, on a clock that only goes forward.
    pub nanoseconds: u64,
    /// How many edges before it were lost.
    pub lost: u32,
}

/// What is done with a chip on an I2C bus (`wit/i2c.wit`).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the names are those of `wit/i2c.wit`")]
pub enum I2cOperation {
    WriteRead { bytes: Vec<u8>, read_length: u32 },
    ReadByte { register: u8 },
    ReadWord { register: u8 },
    WriteByte { register: u8, value: u8 },
    WriteWord { register: u8, value: u16 },
}

/// How a proxy is spoken to (`wit/proxy-redirector.wit`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the names are those of the protocols")]
pub enum ProxyKind {
    Socks4,
    Socks5,
    HttpConnect,
    HttpRelay,
}

/// The proxy that connections are sent to.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Proxy {
    /// How it is spoken to.
    pub kind: ProxyKind,
    /// An IPv4 address or a host name.
    pub address: String,
    /// 1 to 65535.
    pub port: u16,
    /// Who the device is to the proxy.
    pub login: Option<String>,
    /// A secret: not in what [`Debug`](std::fmt::Debug) shows.
    pub password: Option<String>,
}

impl std::fmt::Debug for Proxy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Proxy")
            .field("kind", &self.kind)
            .field("address", &self.address)
            .field("port", &self.port)
            .finish_non_exhaustive()
    }
}

/// A name server that is asked over TCP.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DnsRemote {
    /// An IPv4 address or a host name.
    pub address: String,
    /// 1 to 65535.
    pub port: u16,
}

/// Where connections go.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Redirection {
    /// The proxy.
    pub proxy: Proxy,
    /// Where questions for names go.
    pub dns: Option<DnsRemote>,
}

/// How the device's connections are configured.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum ProxyState {
    /// They are not redirected.
    Direct,
    /// There is a configuration that names no usable proxy; the text says what is wrong.
    Unusable(String),
    /// They go there.
    Redirected(Redirection),
}

/// A variable of the target state without the cloud's prefix, such as `HOST_CONFIG_gpu_mem`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct BootSetting {
    /// Its key.
    pub name: String,
    /// Its text.
    pub value: String,
}

/// How a boot configuration stands to what is wanted of it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct BootComparison {
    /// The settings that differ, by name.
    pub changes: Vec<String>,
    /// Settings that cannot be written, and why. While there is one, nothing is written.
    pub refused: Vec<(String, String)>,
    /// Settings that mean nothing on this board.
    pub foreign: Vec<String>,
    /// The changes take effect with the next boot.
    pub needs_reboot: bool,
}

/// How an operating system with two places to boot from stands, as its provider says.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct OsStatus {
    /// The version that runs.
    pub running: String,
    /// The version that is installed whole in the other place.
    pub staged: Option<String>,
    /// The version that runs stays.
    pub committed: bool,
    /// Percent of an installation that is under way.
    pub installing: Option<u8>,
    /// Why the last installation failed.
    pub failure: Option<String>,
}
