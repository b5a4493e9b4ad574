//! Native code of WebAssembly components, each compiled once and kept.
//!
//! Two parts of the host need compiled components: the plugin runtime and the engine of services. Both get compiled
//! files from a [`Cache`], which starts the program `supervisor-compile` for each component that it does not know yet.
//! A keyed digest ([`check`]) distinguishes its output from any other file.
//!
//! Nothing here compiles, loads or runs a component: the settings of the compiler are numbers and switches
//! ([`Settings`]), which the crate `sandbox` turns into those of an engine, in the programs that need one.

#![warn(missing_docs)]

mod cache;
mod child;
mod code_digest;
mod code_key;
mod entries;
mod error;
mod failures;
mod function_list;
mod functions;
mod lasting_thread;
mod profile;
mod progress;
mod settings;
mod source;

pub use cache::{Cache, KeptFile};
pub use child::{Limits, WALLS};
pub use code_digest::{CodeDigest, Digests, digest};
pub use entries::check;
pub use error::{CheckError, CompileError};
pub use function_list::FunctionList;
pub use functions::LARGE_COMPONENT;
pub use profile::{Profile, UnknownProfile};
pub use settings::{
    Memory, PLUGIN_MEMORY, PLUGIN_PARTS, PluginParts, Proposal, Settings, WASMTIME,
};
pub use source::Source;
