//! What turns a WebAssembly component into native code, and what that code may rely on.
//!
//! Two programs have this: `supervisor-wasm`, which runs plugins in one process and each service in one of its own, and
//! `supervisor-compile`, which has the compiler as well. Both take their engine's settings from [`engine_config`], and
//! compiled files, which a `compiled_code::Cache` keeps, are loaded with [`deserialize`], or where a process may
//! open none with [`deserialize_open`]. The supervisor has nothing of it, which a test of the build checks.

#![warn(missing_docs)]

#[cfg(feature = "compiler")]
mod compiler;
mod deserialize;
mod engine_config;
mod mapped;
#[cfg(feature = "compiler")]
mod parts;
mod proposals;

pub use compiled_code::{PLUGIN_MEMORY, PLUGIN_PARTS, Profile};
#[cfg(feature = "compiler")]
pub use compiler::precompile;
pub use deserialize::deserialize;
pub use engine_config::engine_config;
pub use mapped::deserialize_open;
