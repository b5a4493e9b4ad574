//! Turns a core module, as compilers of C and Go write it, into a component.

use std::ops::Range;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use plugin_manifest::{Capability, Manifest};
use wasi_preview1_component_adapter_provider::{
    WASI_SNAPSHOT_PREVIEW1_ADAPTER_NAME, WASI_SNAPSHOT_PREVIEW1_REACTOR_ADAPTER,
};
use wasm_encoder::{EntityType, ImportSection, RawSection};
use wasmparser::{Parser, Payload, TypeRef};
use wit_component::{ComponentEncoder, StringEncoding, embed_component_metadata};

use super::wasi_stubs::{self, OutputStreams};
use crate::files::write_file;
use crate::world::{self, World};

/// Implements the WASI functions that a language's runtime calls, without WASI.
static STUB: &str = include_str!("../../../stubs/wasi_snapshot_preview1.wat");
/// The name under which a module imports functions from [`STUB`], if it imports others from the adapter to WASI 0.2.
const STUB_NAME: &str = "supervisor_stub";

/// The beginning of the names of sections that only a debugger reads.
const DEBUG_INFORMATION: &str = ".debug_";
const NO_MODULE: &str = "the compiler has written something other than a module";

/// The functions that a module imports from [`STUB`] if the plugin does not ask for the capability. All others come from the
/// adapter, behind which [`wasi_stubs`] replaces the interfaces that the plugin does not ask for.
const STUBBED: [(Capability, &[&str]); 2] = [
    // The interface of WASI 0.2 has no error, so its stub returns the same bytes in every plugin. `crypto/rand` of Go would
    // make keys of them.
    (Capability::Random, &["random_get"]),
    // Behind the adapter, each of them ends the call. But Go's garbage collector polls without waiting, and Go polls a file
    // only if the file can be made non-blocking.
    (Capability::Clock, &["poll_oneoff", "fd_fdstat_set_flags"]),
];

/// Writes the component of a module, whose exports and imports are those of the world, next to the module.
///
/// The functions and interfaces of WASI that the language's runtime imports, and that the plugin does not ask for, are
/// stubbed.
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

fn encode(module: Vec<u8>, world: &World, manifest: &Manifest) -> Result<Vec<u8>> {
    let mut module = without_debug_information(&module)?;
    let uses_wasi = world::uses_wasi(manifest);
    if uses_wasi {
        module = import_from_stub(&module, &stubbed_functions(manifest))?;
    }
    embed_component_metadata(&mut module, &world.resolve, world.id, StringEncoding::UTF8)?;
    let stub = wat::parse_str(STUB).context("the stub of WASI")?;
    let adapter = if uses_wasi {
        WASI_SNAPSHOT_PREVIEW1_REACTOR_ADAPTER
    } else {
        &stub
    };
    let component = ComponentEncoder::default()
        .validate(true)
        .module(&module)?
        .adapter(WASI_SNAPSHOT_PREVIEW1_ADAPTER_NAME, adapter)?
        .adapter(STUB_NAME, &stub)?
        .encode()
        .context("the module does not fit the plugin's world")?;
    if uses_wasi {
        // What the author's code and the runtime print is in the log.
        return wasi_stubs::replace_missing(&component, manifest, OutputStreams::Import);
    }
    Ok(component)
}

/// Returns the module without what only a debugger reads. The names of functions, which a device shows, are kept.
///
/// # Errors
/// It is not a module.
fn without_debug_information(module: &[u8]) -> Result<Vec<u8>> {
    let mut changed = wasm_encoder::Module::new();
    for payload in Parser::new(0).parse_all(module) {
        let payload = payload.context(NO_MODULE)?;
        if let Payload::CustomSection(section) = &payload
            && section.name().starts_with(DEBUG_INFORMATION)
        {
            continue;
        }
        if let Some((id, range)) = payload.as_section() {
            copy_section(&mut changed, module, id, range)?;
        }
    }
    Ok(changed.finish())
}

fn copy_section(
    changed: &mut wasm_encoder::Module,
    module: &[u8],
    id: u8,
    range: Range<usize>,
) -> Result<()> {
    let data = module.get(range);
    let data = data.context("a section ends after the file")?;
    changed.section(&RawSection { id, data });
    Ok(())
}

/// Returns the functions of [`STUBBED`] that belong to capabilities which the plugin does not ask for.
fn stubbed_functions(manifest: &Manifest) -> Vec<&'static str> {
    STUBBED
        .into_iter()
        .filter(|(capability, _)| !manifest.asks_for(*capability))
        .flat_map(|(_, functions)| functions.iter().copied())
        .collect()
}

/// Returns the module with imports of [`STUB`] in place of those of WASI for these functions.
///
/// # Errors
/// It is not a module, or it imports something other than functions.
fn import_from_stub(module: &[u8], functions: &[&str]) -> Result<Vec<u8>> {
    let mut changed = wasm_encoder::Module::new();
    for payload in Parser::new(0).parse_all(module) {
        let payload = payload.context(NO_MODULE)?;
        let Some((id, range)) = payload.as_section() else {
            continue;
        };
        let Payload::ImportSection(section) = payload else {
            copy_section(&mut changed, module, id, range)?;
            continue;
        };
        let mut imports = ImportSection::new();
        for import in section.into_imports() {
            let import = import?;
            let TypeRef::Func(ty) = import.ty else {
                bail!(
                    "the module imports `{}` of `{}`, which is not a function: a plugin can import only functions",
                    import.name,
                    import.module
                );
            };
            let is_stubbed = import.module == WASI_SNAPSHOT_PREVIEW1_ADAPTER_NAME
                && functions.contains(&import.name);
            let from = if is_stubbed { STUB_NAME } else { import.module };
            imports.import(from, import.name, EntityType::Function(ty));
        }
        changed.section(&imports);
    }
    Ok(changed.finish())
}

#[cfg(test)]
mod tests {
    use plugin_manifest::{Project, append_section};
    use wit_parser::Resolve;

    use super::*;
    use crate::component_imports::imports;

    /// Imports what the runtime of Go imports in a plugin that uses no part of WASI, and a function of a file.
    const MODULE: &str = r#"(module
        (import "wasi_snapshot_preview1" "random_get" (func (param i32 i32) (result i32)))
        (import "wasi_snapshot_preview1" "clock_time_get" (func (param i32 i64 i32) (result i32)))
        (import "wasi_snapshot_preview1" "poll_oneoff" (func (param i32 i32 i32 i32) (result i32)))
        (import "wasi_snapshot_preview1" "fd_fdstat_set_flags" (func (param i32 i32) (result i32)))
        (import "wasi_snapshot_preview1" "fd_write" (func (param i32 i32 i32 i32) (result i32)))
        (import "wasi_snapshot_preview1" "fd_filestat_get" (func (param i32 i32) (result i32)))
        (memory (export "memory") 1)
        (func (export "cabi_realloc") (param i32 i32 i32 i32) (result i32) unreachable)
        (func (export "begin") (result i32) i32.const 7))"#;

    fn manifest(capabilities: &[&str]) -> Manifest {
        let lines = capabilities.iter().map(|name| format!("{name} = \"r\"\n"));
        let text = format!(
            "name = \"a\"\nversion = \"0.1.0\"\n[capabilities]\n{}[routes]\n\"GET /v3/a\" = \"a\"\n",
            lines.collect::<String>()
        );
        Project::parse(&text).unwrap().manifest
    }

    #[test]
    fn a_component_imports_the_parts_of_wasi_that_its_manifest_asks_for_and_no_other() {
        let mut resolve = Resolve::default();
        let wit = "package local:test;\nworld plugin {\n    export begin: func() -> u32;\n}\n";
        let package = resolve.push_str("plugin.wit", wit).unwrap();
        let id = resolve.select_world(&[package], Some("plugin")).unwrap();
        let world = World { resolve, id };
        let module = wat::parse_str(MODULE).unwrap();

        let (clock, wall) = ("wasi:clocks/monotonic-clock", "wasi:clocks/wall-clock");
        let (files, folders) = ("wasi:filesystem/types", "wasi:filesystem/preopens");
        let random = "wasi:random/random";
        for (capabilities, expected) in [
            (&["clock"][..], &[clock, wall][..]),
            (&[], &[]),
            (&["random"], &[random]),
            // The times of files have a type of this clock.
            (&["files"], &[wall, folders, files]),
            (&["clock", "files"], &[clock, wall, folders, files]),
            (&["clock", "random"], &[clock, wall, random]),
            (&["files", "random"], &[wall, folders, files, random]),
            (
                &["clock", "files", "random"],
                &[clock, wall, folders, files, random],
            ),
        ] {
            let component = encode(module.clone(), &world, &manifest(capabilities)).unwrap();
            let found = imports(&component);
            let interfaces = found.iter().filter_map(|import| import.split('@').next());
            let parts = ["wasi:clocks/", "wasi:filesystem/", "wasi:random/"];
            let granted: Vec<&str> = interfaces
                .filter(|interface| parts.iter().any(|part| interface.starts_with(part)))
                .collect();
            assert_eq!(granted, expected, "{capabilities:?}");
            let prints = found
                .iter()
                .any(|import| import.starts_with("wasi:cli/stderr@"));
            assert_eq!(prints, !capabilities.is_empty(), "{capabilities:?}");
        }
    }

    #[test]
    fn without_their_capabilities_random_bytes_and_waiting_come_from_the_stub() {
        let module = wat::parse_str(MODULE).unwrap();
        for (capabilities, expected) in [
            (&["clock"][..], &["random_get"][..]),
            (&["random"], &["poll_oneoff", "fd_fdstat_set_flags"]),
            (&["clock", "random"], &[]),
            (
                &["files"],
                &["random_get", "poll_oneoff", "fd_fdstat_set_flags"],
            ),
        ] {
            let functions = stubbed_functions(&manifest(capabilities));
            let changed = import_from_stub(&module, &functions).unwrap();
            let mut stubbed = Vec::new();
            let mut count = 0;
            for payload in Parser::new(0).parse_all(&changed) {
                if let Payload::ImportSection(section) = payload.unwrap() {
                    for import in section.into_imports() {
                        let import = import.unwrap();
                        count += 1;
                        if import.module == STUB_NAME {
                            stubbed.push(import.name);
                        }
                    }
                }
            }
            assert_eq!((stubbed.as_slice(), count), (expected, 6));
        }
        assert_eq!(import_from_stub(&module, &[]).unwrap(), module);
    }

    #[test]
    fn only_debug_information_is_removed() {
        let sections = |with_debug_information: bool| {
            let mut sections = vec![("name", 3), (".debug", 1), ("debug_info", 1)];
            if with_debug_information {
                sections.extend([(".debug_info", 1 << 20), (".debug_str", 0)]);
            }
            sections
        };
        let module = |sections: Vec<(&str, usize)>| {
            let mut module = wat::parse_str(MODULE).unwrap();
            for (name, length) in sections {
                append_section(&mut module, name, &vec![0; length]);
            }
            module
        };
        let stripped = without_debug_information(&module(sections(true))).unwrap();
        assert_eq!(stripped, module(sections(false)));
    }

    #[test]
    fn a_module_that_imports_anything_but_functions_is_refused() {
        let module = wat::parse_str("(module (import \"env\" \"memory\" (memory 1)))").unwrap();
        for (module, expected) in [
            (
                module,
                "the module imports `memory` of `env`, which is not a function",
            ),
            (b"noise".to_vec(), "something other than a module"),
        ] {
            let error = import_from_stub(&module, &[]).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
    }
}
