//! Components and callers that mean harm, a file each, against a running supervisor.
//!
//! Each file of `components/` is a plugin, in WebAssembly's text format; each of `callers/` is the script of a client.
//! The comment at the beginning of a file says in a sentence what it tries, and then, line by line, what the result has
//! to be ([`attack`]). [`verdict`] checks the rest: the supervisor lives, `/ping` and another plugin answer during the
//! attack, nothing on the device has changed, no line of the log is forged, memory is released.
//!
//! `HOSTILE=NAME` in the environment runs only the attack with this name.

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

/// Returns a folder of this crate.
#[must_use]
pub fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(name)
}
