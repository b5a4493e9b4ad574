//! The host's operating system: what the supervisor asks of it and does to it.
//!
//! [`HostOs`] is the one way to reboot the device, to ask about and to restart the host's units, and to
//! name the host; [`DBus`] does it through systemd's services on the system bus, [`Rehearsal`] only says
//! what it would do. [`Journal`] reads the host's journal. [`GpioChips`] and [`I2cBuses`] are
//! what hardware is connected to. [`ConfigJson`] is the file on the boot partition that holds who the device is.
//! The binary makes one of each and hands them to whoever needs them; nothing here decides whether an
//! action is allowed, which is for update locks, scopes and the plugins' policy.

#![warn(missing_docs)]

mod bus_values;
mod config_json;
mod dbus;
mod error;
mod firewall;
mod gpio;
mod host_name;
mod host_os;
mod i2c;
mod journal;
mod rehearsal;
mod unit_name;

pub use config_json::{ConfigJson, ConfigJsonError};
pub use dbus::{DBus, system_bus_below};
pub use error::OsError;
pub use firewall::{Firewall, FirewallError, FirewallRules};
pub use gpio::{
    Bias, Drive, Edge, EdgeDetection, GpioChips, GpioError, GpioLine, KernelGpio, LineAddress,
    LineId, LineMode, LineRequest, SimulatedGpio,
};
pub use host_name::check as check_host_name;
pub use host_os::{Action, HostOs, MethodCall, MethodError, UnitState};
pub use i2c::{BusId, I2cBuses, I2cError, I2cOperation, KernelI2c, SimulatedI2c};
pub use journal::{Journal, JournalError, JournalOptions, JournalReader};
pub use rehearsal::Rehearsal;
pub use unit_name::{InvalidUnitName, UnitName};
