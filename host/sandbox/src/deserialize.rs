//! Loading compiled code.

use std::path::Path;

use wasmtime::Engine;
use wasmtime::component::Component;

/// Loads the compiled component at `path`, mapping it rather than copying it, where a [`compiled_code::Cache`] of this
/// folder has written it: a compiled file is native code, and whoever could bring another here could do all that this
/// process can. So all of it is held against the keyed digest in its name first.
///
/// # Errors
/// When no cache of this device wrote it like that under this name, and when it was compiled by another version, with
/// other settings, or for a processor that has features which this one lacks; whoever has the cache then has it thrown
/// away and compiled again.
pub fn deserialize(engine: &Engine, path: &Path) -> wasmtime::Result<Component> {
    compiled_code::check(path)?;
    #[expect(
        unsafe_code,
        reason = "wasmtime cannot check that a file is its own unchanged output"
    )]
    // SAFETY: the file is what `supervisor-compile` wrote to the cache through its standard output, to the last byte:
    // its keyed digest says so, and the key is this device's.
    // The cache's folder has mode 0700 and belongs to the user that this process runs as, its files
    // have mode 0600, and only the cache writes there, by writing another file and renaming it, so
    // that a mapped file never changes. wasmtime itself checks version, settings and target.
    unsafe {
        Component::deserialize_file(engine, path)
    }
}
