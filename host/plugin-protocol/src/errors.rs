//! Why a call was not done. Texts are for the plugin's caller.

use serde::{Deserialize, Serialize};

/// Why the cloud was not asked, or did not answer (`wit/cloud.wit`).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum CloudRefusal {
    /// The device has no cloud.
    Unmanaged,
    /// The device is not registered with its cloud yet.
    Unprovisioned,
    /// The cloud did not answer.
    Unreachable(String),
    /// It answered that it will not.
    Refused(String),
    /// Something failed on the way, here or there.
    Failed(String),
}

/// Why a plugin's store did not do what it was asked to (`wit/store.wit`).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{0}")]
pub enum DataError {
    /// A key, a value or the sum of them is too large; the text says which.
    TooLarge(String),
    /// The store failed.
    Other(String),
}

/// Why the host's name was not read or not set (`wit/host-name.wit`).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{0}")]
pub enum HostNameError {
    /// It is none that a host can have.
    Invalid(String),
    /// It could not be read or set.
    Other(String),
}

/// Why the journal is not read (`wit/journal.wit`).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{0}")]
pub enum JournalError {
    /// An option has a value that no option can have.
    Invalid(String),
    /// As many readers as the host allows are at work.
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

/// Why the redirector of connections was not read, written or told (`wit/proxy-redirector.wit`).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{0}")]
pub enum ProxyError {
    /// No plugin of this device provides the action.
    Unavailable(String),
    /// A value cannot be configured; the text names it.
    Invalid(String),
    /// The configuration could not be read, written or taken up.
    Other(String),
}

/// Why a metric was not reported (`wit/metrics.wit`).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{0}")]
pub enum MetricsError {
    /// A name, a label or a value is not valid, or the metric is of the other kind.
    Invalid(String),
    /// The plugin has as many series as it may have.
    TooMany(String),
}

/// Why a field of the device's report was not changed (`wit/report.wit`).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{0}")]
pub enum ReportError {
    /// The name, the value or the unit is not valid.
    Invalid(String),
    /// There are as many fields as there may be.
    TooMany(String),
}

/// Why a request was not sent, or not answered (`wit/http.wit`).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{0}")]
pub enum HttpError {
    /// The policy does not name the host and port.
    NotGranted(String),
    /// It is no request that can be sent.
    Invalid(String),
    /// There was no answer.
    Unreachable(String),
    /// The answer is longer than it may be.
    TooLarge(String),
}

/// Why another plugin did not do an action of its own (`wit/actions.wit`).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{0}")]
pub enum OwnActionError {
    /// The policy does not name it for the plugin.
    NotGranted(String),
    /// No plugin has it now.
    Unavailable(String),
    /// The input is too long.
    Invalid(String),
    /// The other plugin's own words.
    Refused(String),
    /// The other plugin failed.
    Failed(String),
}

/// Why a unit was not looked at or not restarted (`wit/units.wit`).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{0}")]
pub enum UnitError {
    /// The policy does not name this unit, or it is no name of a unit.
    NotGranted(String),
    /// The host has no such unit.
    NotFound(String),
    /// The service manager did not answer, or refused.
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
    /// The settings, or a length.
    Invalid(String),
    /// It could not be read or written.
    Other(String),
}

/// Why a GPIO line was not read or switched (`wit/gpio.wit`).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{0}")]
pub enum GpioError {
    /// The policy does not name it.
    NotGranted(String),
    /// The device has no such chip or line.
    NotFound(String),
    /// Somebody else holds it.
    Busy(String),
    /// The line cannot do that.
    Invalid(String),
    /// It could not be read or written.
    Other(String),
}

/// Why nothing was transferred on an I2C bus (`wit/i2c.wit`).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{0}")]
pub enum I2cError {
    /// The policy does not name the chip.
    NotGranted(String),
    /// The device has no such bus.
    NotFound(String),
    /// The kernel has the chip, or the bus is in use.
    Busy(String),
    /// A length, or what the bus cannot do.
    Invalid(String),
    /// No chip answers.
    NoAnswer(String),
    /// It failed.
    Other(String),
}

/// Why a method on the system bus was not called, or did not answer (`wit/dbus.wit`).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
pub enum DbusError {
    /// The policy does not name it.
    #[error("{0}")]
    NotGranted(String),
    /// It is no call that can be made.
    #[error("{0}")]
    Invalid(String),
    /// The service's own error.
    #[error("{}: {}", _0.name, _0.message)]
    Refused(DbusRefusal),
    /// The bus or the service does not answer.
    #[error("{0}")]
    Unreachable(String),
    /// The answer has no form that plugins get.
    #[error("{0}")]
    Unreadable(String),
}

/// The error that a service answered with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DbusRefusal {
    /// Such as `org.freedesktop.DBus.Error.UnknownMethod`.
    pub name: String,
    /// For people.
    pub message: String,
}

/// Why the device's own API was not asked, or did not answer (`wit/api.wit`).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{0}")]
pub enum ApiError {
    /// The policy does not name the method and route.
    NotGranted(String),
    /// It is no request that can be made.
    Invalid(String),
    /// It was not answered.
    Unavailable(String),
    /// The answer is longer than it may be.
    TooLarge(String),
}
