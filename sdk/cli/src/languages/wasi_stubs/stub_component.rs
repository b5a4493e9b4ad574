//! A component that exports interfaces of WASI which lead nowhere.
//!
//! The interpreters call some of them at the start of each call, so a stub answers if it can: there are no files and no
//! sockets, the clock stands still, and random bytes are always the same, which the interpreters' SDKs and `core_module.rs`
//! keep from the plugin. A function that would have to return a resource ends the call.

use std::fmt::Write as _;

use anyhow::{Context as _, Result, ensure};
use wit_component::{ComponentEncoder, StringEncoding, embed_component_metadata};
use wit_parser::abi::{AbiVariant, WasmSignature, WasmType};
use wit_parser::{
    Function, LiftLowerAbi, ManglingAndAbi, Resolve, Type, TypeDefKind, WasmExport, WasmExportKind,
    WorldId, WorldItem,
};

/// The names of the module's exports.
const MANGLING: ManglingAndAbi = ManglingAndAbi::Legacy(LiftLowerAbi::Sync);
/// Functions that return as many random bytes as their argument says.
const RANDOM_BYTES: [&str; 2] = ["get-random-bytes", "get-insecure-random-bytes"];

/// The memory of the module, if a function needs it: a device counts the memories of a call. It begins with zeros, which are
/// a value of any type without resources: an empty list, no value, the time 0. At 256 is the first error of an interface.
/// Strings and lists of a caller are put at 1024, where nobody reads them, and from where random bytes are taken. A longer
/// one is outside of memory, which ends the call.
const MEMORY: &str = r#"
  (memory (export "memory") 1)
  (data (i32.const 256) "\01")
  (func (export "cabi_realloc") (param i32 i32 i32 i32) (result i32) i32.const 1024)
"#;

/// Returns a component that exports those imports of a world for which `is_missing` returns true; `None` if there are none.
///
/// # Errors
/// The interfaces have functions that a stub cannot have.
pub(super) fn encode(
    mut resolve: Resolve,
    world: WorldId,
    is_missing: impl Fn(&str) -> bool,
) -> Result<Option<Vec<u8>>> {
    let mut exports = resolve.worlds[world].imports.clone();
    exports.retain(|key, _| is_missing(&resolve.name_world_key(key)));
    if exports.is_empty() {
        return Ok(None);
    }
    // The types of the exports may be those of other interfaces.
    let mut imports = resolve.worlds[world].imports.clone();
    imports.retain(|key, _| {
        !exports.contains_key(key) && resolve.name_world_key(key).starts_with("wasi:")
    });

    let mut text = "(module".to_owned();
    let mut uses_memory = false;
    for (key, item) in &exports {
        let WorldItem::Interface { id, .. } = item else {
            continue;
        };
        for function in resolve.interfaces[*id].functions.values() {
            let name = resolve.wasm_export_name(
                MANGLING,
                WasmExport::Func {
                    interface: Some(key),
                    func: function,
                    kind: WasmExportKind::Normal,
                },
            );
            let signature = resolve.wasm_signature(AbiVariant::GuestExport, function);
            uses_memory |= signature.retptr || signature.params.contains(&WasmType::Pointer);
            add_function(&mut text, &resolve, &name, function, &signature)?;
        }
    }
    if uses_memory {
        text.push_str(MEMORY);
    }
    text.push(')');
    let mut module = wat::parse_str(&text).context("the stub of WASI")?;

    let stub = &mut resolve.worlds[world];
    stub.imports = imports;
    stub.exports = exports;
    embed_component_metadata(&mut module, &resolve, world, StringEncoding::UTF8)?;
    let component = ComponentEncoder::default()
        .validate(true)
        .module(&module)?
        .encode()
        .context("failed to write the stub of WASI")?;
    Ok(Some(component))
}

/// Adds a function, which is exported under this name.
fn add_function(
    text: &mut String,
    resolve: &Resolve,
    name: &str,
    function: &Function,
    signature: &WasmSignature,
) -> Result<()> {
    ensure!(
        !function.kind.is_async(),
        "`{}` is asynchronous, which a stub cannot be",
        function.name
    );
    let _ = write!(text, "\n  (func (export \"{name}\")");
    for (kind, types) in [("param", &signature.params), ("result", &signature.results)] {
        for ty in types {
            let _ = write!(text, " ({kind} {})", type_name(*ty));
        }
    }
    let body = if RANDOM_BYTES.contains(&function.name.as_str()) {
        "(if (i64.gt_u (local.get 0) (i64.const 60000)) (then unreachable)) \
         (i32.store (i32.const 512) (i32.const 1024)) \
         (i32.store (i32.const 516) (i32.wrap_i64 (local.get 0))) i32.const 512"
    } else if signature.retptr {
        if is_result(resolve, function) {
            "i32.const 256"
        } else {
            "i32.const 0"
        }
    } else {
        match signature.results.as_slice() {
            [] => "",
            // Not 0, which some runtimes interpret as a missing clock.
            [WasmType::I64] => "i64.const 1000000",
            _ => "unreachable",
        }
    };
    let _ = write!(text, " {body})");
    Ok(())
}

fn is_result(resolve: &Resolve, function: &Function) -> bool {
    let mut ty = function.result;
    while let Some(Type::Id(id)) = ty {
        match &resolve.types[id].kind {
            TypeDefKind::Result(_) => return true,
            TypeDefKind::Type(inner) => ty = Some(*inner),
            _ => return false,
        }
    }
    false
}

fn type_name(ty: WasmType) -> &'static str {
    match ty {
        WasmType::I32 | WasmType::Pointer | WasmType::Length => "i32",
        WasmType::I64 | WasmType::PointerOrI64 => "i64",
        WasmType::F32 => "f32",
        WasmType::F64 => "f64",
    }
}
