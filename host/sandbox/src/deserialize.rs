//! Loading compiled code.

use std::path::Path;

use wasmtime::Engine;
use wasmtime::component::Component;

/// Loads the compiled component at `path`, mapping it rather than copying it.
///
/// `path` must be one that a [`crate::Cache`] gave: a compiled file is native code, and who can write
/// it can do all that this process can.
///
/// # Errors
/// When the file was compiled by another version or with other settings, or for a processor that has
/// features which this one lacks; the cache then throws it away and compiles again.
pub fn deserialize(engine: &Engine, path: &Path) -> wasmtime::Result<Component> {
    #[expect(
        unsafe_code,
        reason = "wasmtime cannot check that a file is its own unchanged output"
    )]
    // SAFETY: the file is what `supervisor-compile` wrote to the cache through its standard output, to the last byte:
    // the cache gives no path before it has held the file against the digest in its name.
    // The cache's folder has mode 0700 and belongs to the user that this process runs as, its files
    // have mode 0600, and only the cache writes there, by writing another file and renaming it, so
    // that a mapped file never changes. wasmtime itself checks version, settings and target.
    unsafe {
        Component::deserialize_file(engine, path)
    }
}
