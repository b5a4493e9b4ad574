//! Plugins in a separate process, and the protocol between it and its host.
//!
//! [`WorkerRuntime`] is the host's end: a `GuestRuntime` that runs plugins in `supervisor-wasm plugins`, which it
//! starts, watches, and restarts. [`serve`] is the worker's end, around a runtime in its own process.
//!
//! ```text
//! notes          host ──> worker  SOCK_SEQPACKET, the worker's standard input; they carry descriptors
//! conversations  host <─> worker  a socket pair each, for one request and its answer after another, bodies in pieces
//! host calls     host <── worker  one stream: requests of instances, with numbers, and the answers
//! ```
//!
//! The kernel's buffers provide a conversation's flow control. A conversation is used for the next question if the
//! answer was read to its end. It ends with its socket if a call is cancelled, or has a body in pieces. The worker is
//! treated as hostile: each length that it sends is limited, and its calls are checked against the grants of the plugin
//! that makes them. It refers to plugins, instances and calls by numbers; a number that the host has not given out
//! means nothing.

#![warn(missing_docs)]

mod body;
mod budget;
mod frames;
mod host;
mod notes;
mod outbox;
mod socket;
mod wire;
mod worker;

pub use host::{WorkerConfig, WorkerRuntime, WorkerWalls};
pub use worker::{Assignment, serve};
