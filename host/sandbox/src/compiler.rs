//! The compiler's side: only `supervisor-compile` has this.

use crate::proposals::needed_but_off;
use crate::{Profile, engine_config};

/// Compiles the component `wasm` for this machine's processor.
///
/// # Errors
/// When `wasm` is not a valid component, or uses a proposal that is off.
pub fn precompile(profile: Profile, wasm: &[u8]) -> wasmtime::Result<Vec<u8>> {
    let engine = wasmtime::Engine::new(&engine_config(profile))?;
    engine
        .precompile_component(wasm)
        .map_err(|error| match needed_but_off(wasm) {
            Some(needed) => error.context(needed),
            None => error,
        })
}
