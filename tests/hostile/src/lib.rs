//! Components and callers that mean harm, a file each, against a running supervisor.
//!
//! Each file of `components/` is a plugin, in WebAssembly's text format; each of `callers/` is what a client sends. The
//! comment that a file begins with says in a sentence what it tries, and then, a line each, what has to become of it
//! ([`attack`]). What has to hold whatever is tried stands in [`verdict`]: the supervisor lives, `/ping` and another
//! plugin answer meanwhile, nothing of the device has changed, no line of the log is forged, memory returns.
//!
//! `HOSTILE=NAME` in the environment runs the one of this name.

pub mod attack;
pub mod calls;
pub mod component;
pub mod exchange;
pub mod memory;
pub mod plugin_folder;
pub mod probes;
pub mod repeats;
pub mod script;
pub mod verdict;

use std::path::{Path, PathBuf};

/// A folder of this crate.
#[must_use]
pub fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(name)
}
