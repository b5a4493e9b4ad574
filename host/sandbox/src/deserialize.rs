//! Loading compiled code.

use std::path::Path;

use wasmtime::Engine;
use wasmtime::component::Component;

/// Loads the compiled component at `path`, mapping it rather than copying it, if a [`compiled_code::Cache`] in this
/// folder has written it: a compiled file is native code, and whoever could replace it could do everything that this
/// process can. So the whole file is first checked against the keyed digest in its name.
///
/// # Errors
/// If no cache of this device wrote this content under this name, or if it was compiled by another version, with other
/// settings, or for a processor with features that this one lacks; the owner of the cache then removes it and compiles
/// it again.
pub fn deserialize(engine: &Engine, path: &Path) -> wasmtime::Result<Component> {
    compiled_code::check(path)?;
    #[expect(
        unsafe_code,
        reason = "wasmtime cannot check that a file is its own unchanged output"
    )]
    // SAFETY: the file is the unchanged output that `supervisor-compile` wrote to the cache through its standard
    // output: its keyed digest proves this, and the key is this device's. The cache's folder has mode 0700 and belongs
    // to the user that this process runs as, its files have mode 0600, and only the cache writes there, by writing
    // another file and renaming it, so a mapped file never changes. wasmtime itself checks version, settings and
    // target.
    unsafe {
        Component::deserialize_file(engine, path)
    }
}
