//! Reasons why a call failed. Texts are for the plugin's caller.

use serde::{Deserialize, Serialize};

/// Why no request was sent to the cloud, or no answer came back (`wit/cloud.wit`).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum CloudRefusal {
    /// The device has no cloud.
    Unmanaged,
    /// The device is not registered with its cloud yet.
    Unprovisioned,
    /// The cloud did not answer.
    Unreachable(String),
    /// The cloud refused the request.
    Refused(String),
    /// Something failed on the way, on either side.
    Failed(String),
}

/// Why an operation on a plugin's store failed (`wit/store.wit`).
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
    /// It is not a name that a host can have.
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

/// Why the redirector of connections was not read, written or notified
/// (`wit/proxy-redirector.wit`).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{0}")]
pub enum ProxyError {
    /// No plugin of this device provides the action.
    Unavailable(String),
    /// A value cannot be configured; the text names it.
    Invalid(String),
    /// The configuration could not be read, written or applied.
    Other(String),
}

/// Why a metric was not reported (`wit/metrics.wit`).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{0}")]
pub enum MetricsError {
    /// A name, a label or a value is not valid, or the metric is of the other kind.
    Invalid(String),
    /// The plugin already has the maximum number of series.
    TooMany(String),
}

/// Why a field in the device's report was not changed (`wit/report.wit`).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{0}")]
pub enum ReportError {
    /// The name, the value or the unit is not valid.
    Invalid(String),
    /// The maximum number of fields exists already.
    TooMany(String),
}

/// Why a request was not sent, or not answered (`wit/http.wit`).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{0}")]
pub enum HttpError {
    /// The policy does not name the host and port.
    NotGranted(String),
    /// It is not a valid request.
    Invalid(String),
    /// There was no answer.
    Unreachable(String),
    /// The answer is too long.
    TooLarge(String),
}

/// Why another plugin did not perform one of its own actions (`wit/actions.wit`).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{0}")]
pub enum OwnActionError {
    /// The policy does not grant this action to the plugin.
    NotGranted(String),
    /// No plugin provides it at present.
    Unavailable(String),
    /// The input is too long.
    Invalid(String),
    /// The other plugin's own words.
    Refused(String),
    /// The other plugin failed.
    Failed(String),
}

/// Why a unit was not queried or restarted (`wit/units.wit`).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{0}")]
pub enum UnitError {
    /// The policy does not name this unit, or it is not the name of a unit.
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
    /// The settings or a length are invalid.
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
    /// Something else holds it.
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
    /// The chip is claimed by a kernel driver, or the bus is in use.
    Busy(String),
    /// A length is invalid, or the bus cannot do this.
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
    /// It is not a valid call.
    #[error("{0}")]
    Invalid(String),
    /// The service's own error.
    #[error("{}: {}", _0.name, _0.message)]
    Refused(DbusRefusal),
    /// The bus or the service did not answer.
    #[error("{0}")]
    Unreachable(String),
    /// The answer is not in a form that plugins can receive.
    #[error("{0}")]
    Unreadable(String),
}

/// The error that a service returned.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DbusRefusal {
    /// Such as `org.freedesktop.DBus.Error.UnknownMethod`.
    pub name: String,
    /// For people.
    pub message: String,
}

/// Why no request was sent to the device's own API, or no answer came back (`wit/api.wit`).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{0}")]
pub enum ApiError {
    /// The policy does not name the method and route.
    NotGranted(String),
    /// It is not a valid request.
    Invalid(String),
    /// There was no answer.
    Unavailable(String),
    /// The answer is too long.
    TooLarge(String),
}
