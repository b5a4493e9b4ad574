//! Data in calls and answers whose types are not generated. Each type corresponds to one in `wit/`, which contains the
//! guarantees.

use serde::{Deserialize, Serialize};

/// An object of the host that one instance holds: an LED, update locks, a reader of the journal. It means nothing to
/// any other instance, and is released together with its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Handle(pub u64);

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
    Bytes(#[serde(with = "serde_bytes")] Vec<u8>),
    /// The stream has ended.
    End,
    /// The stream ended early; the host's log says why.
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
