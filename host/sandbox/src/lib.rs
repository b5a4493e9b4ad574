//! What turns a WebAssembly component into native code, and what that code may rely on.
//!
//! Two parts of the host run components: plugins (in the supervisor's own process) and wasm services
//! (each in a child process). Both take their engine's settings from [`engine_config`], get compiled
//! files from a [`Cache`], and load them with [`deserialize`], which holds the one `unsafe` of it all.
//!
//! Nothing here compiles: the compiler is a program of its own, `supervisor-compile`, which the cache
//! starts for each file that it does not know yet. The resident process has no compiler in it, which a
//! test of the build checks.

#![warn(missing_docs)]

mod cache;
mod child;
mod code_key;
#[cfg(feature = "compiler")]
mod compiler;
mod deserialize;
mod entries;
mod error;
mod failures;
mod profile;
mod proposals;

pub use cache::{Cache, Source, digest};
pub use child::{Limits, WALLS};
#[cfg(feature = "compiler")]
pub use compiler::precompile;
pub use deserialize::{deserialize, deserialize_bytes};
pub use error::CompileError;
pub use profile::{PLUGIN_MEMORY, Profile, UnknownProfile, engine_config};
