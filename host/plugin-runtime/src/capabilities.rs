//! The functions that plugins can call, one file for each interface of `wit/`: calls are translated into plain data for
//! the host, which carries them out (`host/plugins/src/provision.rs`), and its answers are translated back. The
//! functions' guarantees are in `wit/`.

mod actions;
mod api;
mod caller;
mod cloud;
mod config;
mod dbus;
mod device;
mod gpio;
mod host_name;
mod http;
mod i2c;
mod identify;
pub(crate) mod journal;
pub(crate) mod led;
pub(crate) mod log;
mod metrics;
mod proxy_redirector;
mod proxy_types;
mod report;
pub(crate) mod serial;
mod store;
mod timer;
mod types;
mod units;
pub(crate) mod update_lock;
