//! Proposals of WebAssembly: those that devices run, and those that are off. One component for each, as small as
//! possible, with the real compiler.

use compiled_code::{Cache, Profile, Source};
use sandbox::engine_config;
use wasmtime::Engine;

use crate::cache_in;

/// Disabled proposals by the words of the refusal, each with the text of a component that uses it.
const REFUSED: &[(&str, &str)] = &[
    ("threads", "(core module (memory 1 1 shared))"),
    (
        "shared-everything threads",
        "(core module (type (shared (func))))",
    ),
    (
        "relaxed SIMD",
        "(core module (func (param v128 v128) (result v128)
            local.get 0 local.get 1 i8x16.relaxed_swizzle))",
    ),
    ("tail calls", "(core module (func $f return_call $f))"),
    ("64-bit memories", "(core module (memory i64 1))"),
    (
        "wide arithmetic",
        "(core module (func (param i64 i64 i64 i64) (result i64 i64)
            local.get 0 local.get 1 local.get 2 local.get 3 i64.add128))",
    ),
    (
        "typed function references",
        "(core module (type $f (func)) (func (param (ref null $f)) local.get 0 call_ref $f))",
    ),
    ("garbage collection", "(core module (type (struct)))"),
    (
        "references to garbage-collected values",
        "(core module (table 1 externref))",
    ),
    ("exceptions", "(core module (tag $e) (func throw $e))"),
    (
        "legacy exceptions",
        "(core module (func try catch_all end))",
    ),
    (
        "stack switching",
        "(core module (type $f (func)) (type (cont $f)))",
    ),
    ("custom page sizes", "(core module (memory 1 (pagesize 1)))"),
    (
        "asynchronous functions with stacks of their own",
        "(core module $m (func (export \"f\"))) (core instance $i (instantiate $m))
         (func (export \"f\") async (canon lift (core func $i \"f\") async))",
    ),
    (
        "further built-in functions of asynchronous components",
        "(type $s (stream u8)) (core func (canon stream.cancel-read $s async))",
    ),
    ("threads of components", "(core func (canon thread.index))"),
    ("error contexts", "(core func (canon error-context.drop))"),
    ("lists of a fixed length", "(type (list u8 4))"),
    ("maps", "(type (map string u8))"),
];

/// The proposals that toolchains emit.
const ALLOWED: &[(&str, &str)] = &[
    (
        "mutable globals",
        "(core module (global (export \"g\") (mut i32) (i32.const 0)))",
    ),
    (
        "sign extension",
        "(core module (func (param i32) (result i32) local.get 0 i32.extend8_s))",
    ),
    (
        "conversions that saturate",
        "(core module (func (param f32) (result i32) local.get 0 i32.trunc_sat_f32_s))",
    ),
    (
        "several results",
        "(core module (func (result i32 i32) i32.const 1 i32.const 2))",
    ),
    (
        "bulk memory",
        "(core module (memory 1) (func i32.const 0 i32.const 0 i32.const 0 memory.copy))",
    ),
    (
        "reference types",
        "(core module (table 1 funcref) (func (result i32) ref.null func i32.const 1 table.grow))",
    ),
    (
        "constants of several steps",
        "(core module (global i32 (i32.add (i32.const 1) (i32.const 2))))",
    ),
    (
        "SIMD",
        "(core module (func (result v128) i32.const 1 i8x16.splat))",
    ),
    ("several memories", "(core module (memory 1) (memory 1))"),
    (
        "asynchronous functions",
        "(type $s (stream u8)) (core func (canon stream.new $s))",
    ),
];

/// Returns the message about a component with this content; empty if it compiles and loads.
async fn error_message(cache: &Cache, profile: Profile, content: &str) -> String {
    let engine = Engine::new(&engine_config(profile)).unwrap();
    let wasm = wat::parse_str(format!("(component {content})")).unwrap();
    let source = Source::new("some.wasm", &wasm);
    match cache.compile_file(&source, profile).await {
        Err(error) => error.to_string(),
        Ok(file) => match sandbox::deserialize(&engine, &file) {
            Err(error) => format!("it does not load: {error:#}"),
            Ok(_) => String::new(),
        },
    }
}

#[tokio::test]
async fn proposals_that_no_toolchain_emits_are_refused_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let cache = cache_in(&folder);
    for profile in [Profile::Plugin, Profile::Service] {
        for (name, content) in REFUSED {
            let message = error_message(&cache, profile, content).await;
            let expected = "the compiler refuses `some.wasm`: it uses proposals of WebAssembly that are off on devices: ";
            assert!(message.starts_with(expected), "{name}: {message:?}");
            let list = message.split(" on devices: ").nth(1).unwrap_or_default();
            let list = list.split("; build").next().unwrap_or_default();
            assert!(
                list.split(", ").any(|one| one == *name),
                "{name}: {message}"
            );
        }
    }
}

#[tokio::test]
async fn the_output_of_toolchains_is_compiled_and_loaded() {
    let folder = tempfile::tempdir().unwrap();
    let cache = cache_in(&folder);
    for profile in [Profile::Plugin, Profile::Service] {
        for (name, content) in ALLOWED {
            assert_eq!(error_message(&cache, profile, content).await, "", "{name}");
        }
    }
}
