//! The compiler's side: only `supervisor-compile` has this.

use crate::{Profile, engine_config};

/// Compiles the component `wasm` for this machine's processor.
///
/// # Errors
/// When `wasm` is not a valid component.
pub fn precompile(profile: Profile, wasm: &[u8]) -> wasmtime::Result<Vec<u8>> {
    wasmtime::Engine::new(&engine_config(profile))?.precompile_component(wasm)
}
