//! The bounds that calls of plugins meet.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// How long a request waits for a place, for its turn with a plugin, or for memory, before it is refused: a crowd of
/// clients on a slow device waits, and none is sent away.
pub const PATIENCE: Duration = Duration::from_secs(5);

/// How many instances of plugins a runtime holds. A place costs address space (32 MiB) but no memory until it is used.
pub const DEFAULT_SLOTS: usize = 32;

/// The longest input or output of an action of a plugin's own, in bytes: with all else it fits into one message.
pub const ACTION_BYTES: usize = 512 << 10;

/// The most header fields of a request that a plugin sends to another host.
pub const HTTP_HEADERS: usize = 64;
/// The longest of them together, in bytes.
pub const HTTP_HEADER_BYTES: usize = 32 << 10;
/// The longest address of such a request, in bytes.
pub const HTTP_URL: usize = 8 << 10;
/// The longest body of such a request, in bytes: with all else it fits into one message.
pub const HTTP_BODY: usize = 512 << 10;

/// The longest name of a field of the device's report, in bytes.
pub const FIELD_NAME: usize = 64;
/// The longest text of such a field, in bytes.
pub const FIELD_TEXT: usize = 256;
/// The longest unit of such a field, in bytes.
pub const FIELD_UNIT: usize = 16;

/// The most bytes that are read from or written to a serial port at a time.
pub const SERIAL_BYTES: usize = 64 << 10;

/// The longest name of a GPIO line or of a chip on an I2C bus that is passed on, in bytes: the policy gives no longer ones.
pub const HARDWARE_NAME: usize = 256;
/// The most bytes that one transfer on an I2C bus writes, and that it reads.
pub const I2C_BYTES: usize = 4096;

/// The longest name, path, interface, member or signature of a method on the system bus, in bytes.
pub const DBUS_NAME: usize = 1024;
/// The longest arguments of a method on the system bus, in bytes of JSON.
pub const DBUS_ARGUMENTS: usize = 256 << 10;
/// The longest answer, in bytes of JSON.
pub const DBUS_ANSWER: usize = 512 << 10;

/// A bound that a call has met: what there is of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, derive_more::Display)]
pub enum Bound {
    /// Calls of the plugin at a time.
    #[display("it takes {_0} calls at a time")]
    Calls(usize),
    /// Instances of all plugins.
    #[display("all {_0} places of plugins are taken")]
    Places(usize),
    /// Memory of the plugin's instances, in bytes.
    #[display("its calls may use {} MiB of memory in total", _0 >> 20)]
    MemoryOfOne(usize),
    /// Memory of all plugins' instances, in bytes.
    #[display("all plugins may use {} MiB of memory in total", _0 >> 20)]
    MemoryOfAll(usize),
}
