//! Turns a core module, as compilers of C and Go write it, into a component.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use plugin_manifest::Manifest;
use wasi_preview1_component_adapter_provider::{
    WASI_SNAPSHOT_PREVIEW1_ADAPTER_NAME, WASI_SNAPSHOT_PREVIEW1_REACTOR_ADAPTER,
};
use wit_component::{ComponentEncoder, StringEncoding, embed_component_metadata};

use crate::sdk_sources::write_file;
use crate::world::{self, World};

/// Implements the WASI functions that a language's runtime calls, without WASI.
static STUB: &str = include_str!("../../../stubs/wasi_snapshot_preview1.wat");

/// Writes the component of a module, whose exports and imports are those of the world, next to the module.
///
/// The WASI functions that the language's runtime calls are stubbed, unless the plugin asks for a part of WASI: then
/// all of WASI comes from the device, and the plugin has to ask for whatever the runtime imports.
///
/// # Errors
/// The module cannot be read or does not fit the world, or the component cannot be written.
pub(crate) fn write_component(
    module: &Path,
    world: &World,
    manifest: &Manifest,
) -> Result<PathBuf> {
    let component = module.with_file_name("component.wasm");
    let module = std::fs::read(module).context("cannot read what the compiler has written")?;
    write_file(&component, &encode(module, world, manifest)?)?;
    Ok(component)
}

fn encode(mut module: Vec<u8>, world: &World, manifest: &Manifest) -> Result<Vec<u8>> {
    embed_component_metadata(&mut module, &world.resolve, world.id, StringEncoding::UTF8)?;
    let stub;
    let adapter = if world::uses_wasi(manifest) {
        WASI_SNAPSHOT_PREVIEW1_REACTOR_ADAPTER
    } else {
        stub = wat::parse_str(STUB).context("the stub of WASI")?;
        &stub
    };
    ComponentEncoder::default()
        .validate(true)
        .module(&module)?
        .adapter(WASI_SNAPSHOT_PREVIEW1_ADAPTER_NAME, adapter)?
        .encode()
        .context("the module does not fit the plugin's world")
}
