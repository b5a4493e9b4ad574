//! Reasons why a call failed, of the interfaces whose types are not generated. Texts are for the plugin's caller.

use serde::{Deserialize, Serialize};

/// Why the journal is not read (`wit/journal.wit`).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{0}")]
pub enum JournalError {
    /// An option has a value that no option can have.
    Invalid(String),
    /// The host's limit of concurrent readers is reached.
    Busy(String),
    /// The journal command cannot be started.
    Other(String),
}

/// Why an LED was not read, opened or set (`wit/led.wit`).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
pub enum LedError {
    /// The device has no such LED, or the policy does not grant it: its name.
    #[error("no LED `{0}`")]
    NotFound(String),
    /// Another call holds the LED of this name.
    #[error("the LED `{0}` is in use")]
    Busy(String),
    /// It could not be read or written.
    #[error("{0}")]
    Other(String),
}

/// Why update locks were not taken (`wit/update-lock.wit`).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{0}")]
pub enum LocksError {
    /// Somebody holds one; the text says who, in the words of the device API.
    Locked(String),
    /// They could not be taken.
    Other(String),
}

/// Why a serial port was not opened, read or written (`wit/serial.wit`).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{0}")]
pub enum SerialError {
    /// The policy does not name it.
    NotGranted(String),
    /// The device has no such port.
    NotFound(String),
    /// Another call holds it.
    Busy(String),
    /// The settings or a length are invalid.
    Invalid(String),
    /// It could not be read or written.
    Other(String),
}
