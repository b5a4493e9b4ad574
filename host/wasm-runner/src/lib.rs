//! Runs one WebAssembly service in its own process.
//!
//! The supervisor's wasm engine writes a [`wasm_service::record::Launch`] into the container's folder and starts the
//! program `supervisor-wasm` as `wasm-service --record FOLDER`, which calls [`run`]. From then on the process is
//! independent: it restarts the service by its policy, publishes its ports, and writes its log and its state. SIGTERM
//! means "stop": the service's standard input ends, and it is not started again; to end it for certain, kill the
//! process.
//!
//! ```text
//! main thread:   signals, published ports, the epoch clock
//! guest thread:  the component and its sockets, one run after the other
//! ```
//!
//! Its working folder is the engine's, so folders below it can be reached by a user without access to the path above.
//! Before the second thread begins, the process gives up all rights that the service does not need (`confine`).
//!
//! The guest has its own thread, so nothing it does, not even blocking in a file, blocks the other one. Nothing here
//! compiles, chooses what to run, or communicates with the supervisor.

#![warn(missing_docs)]

mod confine;
mod folders;
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

/// Serves the container whose folder is `record` until its service has ended and is not to be started again. Returns
/// the service's exit code.
///
/// The first line of standard output is a [`wasm_service::StartOutcome`].
#[must_use]
pub fn run(record: &Path) -> ExitCode {
    service::run(record)
}
