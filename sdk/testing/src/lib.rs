//! Tests a plugin in the device's own plugin runtime, without a device, privileges or a policy file.
//!
//! A plugin's tests call this crate: [`Host::new`] collects what the device has, [`Host::start`] loads the components
//! as a device would (manifest, grants, limits, compilation), and [`RunningHost`] calls them and watches what they do.
//! The parts of the device that capabilities use are stand-ins: a store, LEDs and a host name in a temporary folder,
//! units, GPIO lines, chips on I2C buses, answers and failures of other hosts, and update locks that the test may hold.
//! The core endpoints are not served, and no keys are checked.
//!
//! The runtime is that of the tool `supervisor-plugin`, which runs as a separate process next to the test, so this
//! crate is built in seconds. `SUPERVISOR_PLUGIN` names the tool; without it, the tool is taken from the `PATH`, or
//! from a `target/dist` above the test's program.
//!
//! Functions here fail by panicking, as tests do.

#![warn(missing_docs)]

mod answer;
mod build;
mod control;
mod description;
mod host;
mod running;
mod tool;

pub use answer::Answer;
pub use build::{
    BuiltPlugin, build, try_build, try_build_plugin, try_build_plugin_without_variables,
};
pub use control::{CallerScope, HttpError, Identity};
pub use description::{assert_described, schemas};
pub use host::Host;
pub use plugin_values::{
    BootComparison, BootSetting, DnsRemote, GateVerdict, InstalledRelease, OsCall, OsStatus,
    PendingUpdate, PluginEvent, Postponement, Proxy, ProxyError, ProxyKind, ProxyState,
    Redirection, ServiceChange, TargetProgress,
};
pub use running::RunningHost;

/// The protocol between the tool and this crate; only for these two.
#[doc(hidden)]
pub mod protocol {
    pub use crate::control::{
        CALLER, Command, DEVICE, DbusMethod, GpioState, HARNESS, HttpExchange, Setup, StartOutcome,
        UpdateLocks, VERSION,
    };
}
