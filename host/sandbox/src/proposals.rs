//! The proposals of WebAssembly that components may use, beyond its first version.
//!
//! Each proposal means code in the compiler and the runtime that can be attacked. So only those are on that
//! [`Settings`](compiled_code::Settings) name, whatever wasmtime has on by default. Compiled code records which were
//! on, and loads only into an engine with the same ones.

use compiled_code::Proposal;
use wasmtime::{Config, WasmFeatures};

/// Switches everything but `allowed` off.
pub(crate) fn restrict(config: &mut Config, allowed: &[Proposal]) {
    let allowed: WasmFeatures = allowed.iter().map(|proposal| feature(*proposal)).collect();
    config.wasm_features(WasmFeatures::all().difference(allowed), false);
    // Some of these are off by default.
    config.wasm_features(allowed, true);
}

fn feature(proposal: Proposal) -> WasmFeatures {
    match proposal {
        Proposal::Floats => WasmFeatures::FLOATS,
        Proposal::MutableGlobals => WasmFeatures::MUTABLE_GLOBAL,
        Proposal::SaturatingConversions => WasmFeatures::SATURATING_FLOAT_TO_INT,
        Proposal::SignExtension => WasmFeatures::SIGN_EXTENSION,
        Proposal::MultipleResults => WasmFeatures::MULTI_VALUE,
        Proposal::BulkMemory => WasmFeatures::BULK_MEMORY,
        Proposal::ReferenceTypes => WasmFeatures::REFERENCE_TYPES,
        Proposal::ExtendedConstants => WasmFeatures::EXTENDED_CONST,
        Proposal::Simd => WasmFeatures::SIMD,
        Proposal::MultipleMemories => WasmFeatures::MULTI_MEMORY,
        Proposal::ComponentModel => WasmFeatures::COMPONENT_MODEL,
        Proposal::AsynchronousComponents => WasmFeatures::CM_ASYNC,
    }
}

/// The proposals that are off, in the words of developers who have to build without them.
#[cfg(feature = "compiler")]
const REFUSED: &[(&str, WasmFeatures)] = &[
    ("threads", WasmFeatures::THREADS),
    (
        "shared-everything threads",
        WasmFeatures::SHARED_EVERYTHING_THREADS,
    ),
    ("relaxed SIMD", WasmFeatures::RELAXED_SIMD),
    ("tail calls", WasmFeatures::TAIL_CALL),
    ("64-bit memories", WasmFeatures::MEMORY64),
    ("wide arithmetic", WasmFeatures::WIDE_ARITHMETIC),
    (
        "typed function references",
        WasmFeatures::FUNCTION_REFERENCES,
    ),
    ("garbage collection", WasmFeatures::GC),
    (
        "references to garbage-collected values",
        WasmFeatures::GC_TYPES,
    ),
    ("exceptions", WasmFeatures::EXCEPTIONS),
    ("legacy exceptions", WasmFeatures::LEGACY_EXCEPTIONS),
    ("stack switching", WasmFeatures::STACK_SWITCHING),
    ("custom page sizes", WasmFeatures::CUSTOM_PAGE_SIZES),
    ("memory control", WasmFeatures::MEMORY_CONTROL),
    ("custom descriptors", WasmFeatures::CUSTOM_DESCRIPTORS),
    ("compact imports", WasmFeatures::COMPACT_IMPORTS),
    (
        "asynchronous functions with stacks of their own",
        WasmFeatures::CM_ASYNC_STACKFUL,
    ),
    (
        "further built-in functions of asynchronous components",
        WasmFeatures::CM_MORE_ASYNC_BUILTINS,
    ),
    ("threads of components", WasmFeatures::CM_THREADING),
    ("error contexts", WasmFeatures::CM_ERROR_CONTEXT),
    (
        "lists of a fixed length",
        WasmFeatures::CM_FIXED_LENGTH_LISTS,
    ),
    ("garbage collection of components", WasmFeatures::CM_GC),
    ("maps", WasmFeatures::CM_MAP),
    ("64-bit components", WasmFeatures::CM64),
    ("nested names", WasmFeatures::CM_NESTED_NAMES),
    ("`implements`", WasmFeatures::CM_IMPLEMENTS),
];

/// Returns, in a sentence, which disabled proposal a refused component needs; `None` if that was not the reason.
#[cfg(feature = "compiler")]
pub(crate) fn needed_but_off(wasm: &[u8]) -> Option<String> {
    let is_valid_with = |features| {
        let mut validator = wasmparser::Validator::new_with_features(features);
        validator.validate_all(wasm).is_ok()
    };
    let all = WasmFeatures::all();
    if !is_valid_with(all) {
        return None;
    }
    let needed: Vec<&str> = REFUSED
        .iter()
        .filter(|(_, proposal)| !is_valid_with(all.difference(*proposal)))
        .map(|(name, _)| *name)
        .collect();
    match needed.as_slice() {
        [] => None,
        needed => Some(format!(
            "it uses proposals of WebAssembly that are off on devices: {}; build it without them",
            needed.join(", ")
        )),
    }
}
