//! Loading compiled code.

use std::path::Path;

use wasmtime::Engine;
use wasmtime::component::Component;

use crate::code_key::CodeKey;
use crate::entries;

/// Loads the compiled component at `path`, mapping it rather than copying it, where a [`crate::Cache`] of this folder
/// has written it: a compiled file is native code, and whoever could bring another here could do all that this process
/// can. So all of it is held against the keyed digest in its name first.
///
/// # Errors
/// When no cache of this device wrote it like that under this name, and when it was compiled by another version, with
/// other settings, or for a processor that has features which this one lacks; the cache then throws it away and
/// compiles again.
pub fn deserialize(engine: &Engine, path: &Path) -> wasmtime::Result<Component> {
    let folder = path.parent().unwrap_or(Path::new("/"));
    let key = CodeKey::read(folder).map_err(|error| {
        wasmtime::Error::msg(format!(
            "failed to read the key of the compiled code in `{}`: {error}",
            folder.display()
        ))
    })?;
    checked(engine, &key, path)
}

/// As [`deserialize`], of a folder that has this key.
pub(crate) fn checked(engine: &Engine, key: &CodeKey, path: &Path) -> wasmtime::Result<Component> {
    let shown = path.display();
    match entries::is_sound(key, path) {
        Ok(true) => {}
        Ok(false) => {
            let what = format!("`{shown}` is damaged, or was not compiled on this device");
            return Err(wasmtime::Error::msg(what));
        }
        Err(error) => {
            let what = format!("failed to read `{shown}`: {error}");
            return Err(wasmtime::Error::msg(what));
        }
    }
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

/// As [`deserialize`], from the content of such a file.
///
/// # Errors
/// As there.
pub fn deserialize_bytes(engine: &Engine, code: &[u8]) -> wasmtime::Result<Component> {
    #[expect(
        unsafe_code,
        reason = "wasmtime cannot check that bytes are its own unchanged output"
    )]
    // SAFETY: they are those of a file as [`deserialize`] takes it, which whoever opened it has held against its digest.
    unsafe {
        Component::deserialize(engine, code)
    }
}
