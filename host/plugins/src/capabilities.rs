//! What plugins can call, one file for each interface of `wit/`. What a function promises stands there.
//!
//! Grants are not checked here: what is not granted is not linked.

mod cloud;
mod config;
mod device;
mod host_name;
mod identify;
pub(crate) mod journal;
pub(crate) mod led;
pub(crate) mod led_memory;
pub(crate) mod log;
mod proxy_redirector;
mod store;
mod timer;
mod types;
mod units;
pub(crate) mod update_lock;
