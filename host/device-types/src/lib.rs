//! What the device reports about itself: its plan, its events, its counters and its log lines. Each type is declared
//! here once, created by the component that has the data, and returned by the API unchanged.
//!
//! ```text
//! model ◄── device-types ◄─┬─ plan, reconcile, supervisor   make the values
//!                          └─ api                           answers with them
//! ```
//!
//! Clients read these values: field names are those of the API (docs/device-api.md), and a field that clients do not
//! receive is marked `serde(skip)` with the reason.

#![warn(missing_docs)]

pub mod event;
mod log;
mod moment;
pub mod plan;
mod plugin;
mod plugin_installation;
mod plugin_log;
mod stats;

pub use event::Event;
pub use log::LogEvent;
pub use moment::Moment;
pub use plan::DevicePlan;
pub use plugin::{
    ConfinedProcess, Confinement, MissingWall, PluginAbout, PluginField, PluginFieldValue,
    PluginLimits, PluginReport, PluginRoutes, PluginState, RouteReport,
};
pub use plugin_installation::{InstallRefusal, PluginInstallation};
pub use plugin_log::{PluginLog, PluginLogLevel, PluginLogLine};
pub use stats::{PluginMetric, PluginMetricValue, PluginStats, ReconcilerStats};
