//! Runs one WebAssembly service in a process of its own.
//!
//! The supervisor's wasm engine writes a [`wasm_service::record::Launch`] into the container's folder and starts the
//! program `supervisor-wasm` as `wasm-service --record FOLDER`, which calls [`run`]. From then on the process
//! stands alone: it restarts the service by its policy, publishes its ports, writes its log and its
//! state, and needs nobody. SIGTERM means "stop": the service's standard input ends, and it is not
//! started again; who wants it gone for certain kills the process.
//!
//! ```text
//! main thread:   signals, published ports, the epoch clock
//! guest thread:  the component and its sockets, one run after the other
//! ```
//!
//! Its working folder is the engine's, so that what is below it is reached by a user who may not look up the path to it.
//! Before the second thread begins, the process gives up all that the service does not need (`confine`).
//!
//! The guest has a thread of its own, so that nothing it does, not even blocking in a file, holds up
//! the other one. Nothing here compiles, chooses what to run, or talks to the supervisor.

#![warn(missing_docs)]

mod confine;
mod guest;
mod health;
mod ownership;
mod pace;
mod ports;
mod publish;
mod routes;
mod rules;
mod service;
mod sockets;
mod state_file;
mod stdio;

use std::path::Path;
use std::process::ExitCode;

/// Serves the container whose folder is `record` until its service has ended and is not to be started
/// again. The exit code is the service's.
///
/// The first line of standard output is a [`wasm_service::StartOutcome`].
#[must_use]
pub fn run(record: &Path) -> ExitCode {
    service::run(record)
}
