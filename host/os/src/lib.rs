//! The host's operating system: the operations that the supervisor uses.
//!
//! [`HostOs`] is the only access to reboots, to the state and restarts of the host's units, and to the host's name;
//! [`DBus`] does it through systemd's services on the system bus, [`Rehearsal`] only logs what it would do. [`Journal`]
//! reads the host's journal. [`GpioChips`] and [`I2cBuses`] give access to connected hardware. [`ConfigJson`] is the
//! file on the boot partition that holds the device's identity. The binary creates one of each and passes them to their
//! users; nothing here decides whether an action is allowed, which is up to update locks, scopes and the plugins'
//! policy.

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
pub use journal::{
    Journal, JournalError, JournalOptions, JournalReader, JournalShare, ReaderLimit,
};
pub use rehearsal::Rehearsal;
pub use unit_name::{InvalidUnitName, UnitName};
