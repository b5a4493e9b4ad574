//! The compiler's part: only `supervisor-compile` contains it.

use std::sync::Arc;

use wasmtime::CacheStore;

use crate::parts::InstanceParts;
use crate::proposals::needed_but_off;
use crate::{Profile, engine_config};

/// Compiles the component `wasm` for this machine's processor, taking over those of its
/// functions that are in `functions`, which then gets the others.
///
/// # Errors
/// If `wasm` is not a valid component, uses a proposal that is off, or is a plugin with more parts than
/// [`PLUGIN_PARTS`](crate::PLUGIN_PARTS): compiling it could take minutes, only for the result to be refused.
pub fn precompile(
    profile: Profile,
    wasm: &[u8],
    functions: Option<Arc<dyn CacheStore>>,
) -> wasmtime::Result<Vec<u8>> {
    // If the component is invalid, compiling it reports what is wrong with it.
    if profile == Profile::Plugin
        && let Some(parts) = InstanceParts::count(wasm)
    {
        parts.check()?;
    }
    let mut config = engine_config(profile);
    if let Some(functions) = functions {
        config.enable_incremental_compilation(functions)?;
    }
    let engine = wasmtime::Engine::new(&config)?;
    engine
        .precompile_component(wasm)
        .map_err(|error| match needed_but_off(wasm) {
            Some(needed) => error.context(needed),
            None => error,
        })
}
