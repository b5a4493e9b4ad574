//! The limits that calls of plugins can run into.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// How long a request waits for a place, for its turn with a plugin, or for memory before it is refused: on a slow
/// device, a crowd of clients waits instead of being turned away.
pub const PATIENCE: Duration = Duration::from_secs(5);

/// How many instances of plugins a runtime has room for. A place costs address space (32 MiB) but no memory until it is
/// used.
pub const DEFAULT_SLOTS: usize = 32;

/// The most bytes of arguments that one plugin's calls to the host can have at a time: four messages of the longest
/// kind. A call beyond that is refused at once: if it waited, it would wait with its arguments.
pub const HOST_CALL_BYTES: usize = 4 << 20;
/// The most bytes of answers that one plugin's calls to the host can have at a time. Each call counts with the longest
/// answer that it can get, and waits for room before the host begins it.
pub const HOST_ANSWER_BYTES: usize = 12 << 20;
/// The same for all plugins of a process: one plugin has at most half.
pub const ALL_HOST_CALL_BYTES: usize = 2 * HOST_CALL_BYTES;
/// The same for their answers.
pub const ALL_HOST_ANSWER_BYTES: usize = 2 * HOST_ANSWER_BYTES;

/// The longest input or output of a plugin's own action, in bytes: with everything else it fits into one message.
pub const ACTION_BYTES: usize = 512 << 10;

/// The most header fields of a request from a plugin to another host.
pub const HTTP_HEADERS: usize = 64;
/// The most bytes of these header fields together.
pub const HTTP_HEADER_BYTES: usize = 32 << 10;
/// The longest address of such a request, in bytes.
pub const HTTP_URL: usize = 8 << 10;
/// The longest body of such a request, in bytes: with everything else it fits into one message.
pub const HTTP_BODY: usize = 512 << 10;

/// The longest name of a field in the device's report, in bytes.
pub const FIELD_NAME: usize = 64;
/// The longest text of such a field, in bytes.
pub const FIELD_TEXT: usize = 256;
/// The longest unit of such a field, in bytes.
pub const FIELD_UNIT: usize = 16;

/// The most bytes that are read from or written to a serial port at once.
pub const SERIAL_BYTES: usize = 64 << 10;

/// The longest name of a GPIO line or an I2C chip that is passed on, in bytes: the policy allows no longer names.
pub const HARDWARE_NAME: usize = 256;
/// The most bytes that one transfer on an I2C bus writes, and the most that it reads.
pub const I2C_BYTES: usize = 4096;

/// The longest name, path, interface, member or signature of a method on the system bus, in bytes.
pub const DBUS_NAME: usize = 1024;
/// The longest arguments of a method on the system bus, in bytes of JSON.
pub const DBUS_ARGUMENTS: usize = 256 << 10;
/// The longest answer, in bytes of JSON.
pub const DBUS_ANSWER: usize = 512 << 10;

/// A limit that a call ran into, with its value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, derive_more::Display)]
pub enum Bound {
    /// Concurrent calls of the plugin.
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
    /// Arguments of the plugin's calls to the host, in bytes.
    #[display("its calls to the host may have {} MiB of arguments at a time", _0 >> 20)]
    HostCalls(usize),
    /// Arguments of all plugins' calls to the host, in bytes.
    #[display("all plugins' calls to the host may have {} MiB of arguments at a time", _0 >> 20)]
    AllHostCalls(usize),
}
