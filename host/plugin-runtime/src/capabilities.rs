//! The functions that plugins can call: calls are translated into plain data for the host, which carries them out
//! (`host/plugins/src/provision.rs`), and its answers are translated back. The functions' guarantees are in `wit/`.
//!
//! Functions that only pass values are generated from `wit/` (`host/capability-codegen`). One file for each other
//! interface has its functions, which hold resources or read streams, or which the host is not needed for.

mod caller;
mod config;
mod identify_window;
pub(crate) mod journal;
mod led;
mod lengths;
mod log;
mod proxy_redirector;
mod proxy_types;
mod serial;
mod timer;
mod types;
mod update_lock;

#[allow(
    clippy::all,
    unused_imports,
    unused_qualifications,
    reason = "generated code"
)]
mod wit {
    include!(concat!(env!("OUT_DIR"), "/wit.rs"));
}
