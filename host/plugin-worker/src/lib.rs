//! Plugins in a process of their own, and what it and its host say to each other.
//!
//! [`WorkerRuntime`] is the host's end: a `GuestRuntime` that has plugins run by `supervisor-wasm plugins`, which it
//! starts, watches, and starts again. [`serve`] is the worker's end, around a runtime in its own process.
//!
//! ```text
//! notes          host ──> worker    SOCK_SEQPACKET, the worker's standard input; they carry descriptors
//! conversations  host <─> worker    a socket pair each, for one question and its answer after another, bodies in pieces
//! host calls     host <── worker    one stream: what instances ask for, by numbers, and the answers
//! ```
//!
//! A conversation has the kernel's buffers for its flow control. It is used for the next question where the answer was
//! read to its end, and ends with its socket where a call is given up, or has a body that comes in pieces. The worker is taken for
//! hostile: each length that it says is bounded, and what it asks for is checked against what the plugin was granted that
//! it asks for. It names plugins, instances and calls by numbers; a number that the host has not given out is nothing.

#![warn(missing_docs)]

mod body;
mod frames;
mod host;
mod notes;
mod outbox;
mod socket;
mod wire;
mod worker;

pub use host::{WorkerConfig, WorkerRuntime, WorkerWalls};
pub use worker::{Assignment, serve};
