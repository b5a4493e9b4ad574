//! Turns WebAssembly components into native code, and provides what that code relies on.
//!
//! Two programs contain this crate: `supervisor-wasm`, which runs plugins in one process and each service in its own,
//! and `supervisor-compile`, which also contains the compiler. Both take their engine's settings from
//! [`engine_config`], and compiled files, which a `compiled_code::Cache` keeps, are loaded with [`deserialize`], or
//! with [`deserialize_open`] in a process that must not open files. The supervisor does not contain this crate, which a
//! test of the build checks.

#![warn(missing_docs)]

#[cfg(feature = "compiler")]
mod compiler;
mod deserialize;
mod engine_config;
mod mapped;
#[cfg(feature = "parts")]
mod parts;
mod proposals;

pub use compiled_code::{PLUGIN_MEMORY, PLUGIN_PARTS, Profile, Settings};
#[cfg(feature = "compiler")]
pub use compiler::precompile;
pub use deserialize::deserialize;
pub use engine_config::engine_config;
pub use mapped::deserialize_open;
#[cfg(feature = "parts")]
pub use parts::InstanceParts;
