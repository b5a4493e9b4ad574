//! Plugins with more parts than the pool of their runtime has room for, with the real compiler.

use compiled_code::{Cache, Profile, Source};

use crate::cache_in;

/// Returns this many instances of a core module.
fn instances(count: usize, module: &str) -> String {
    let instances = "(core instance (instantiate $m))".repeat(count);
    format!("(core module $m {module}) {instances}")
}

async fn compile(cache: &Cache, profile: Profile, body: &str) -> Result<(), String> {
    let wasm = wat::parse_str(format!("(component {body})")).unwrap();
    let compiled = cache.compile_file(&Source::new("it", &wasm), profile).await;
    compiled.map(|_| ()).map_err(|error| error.to_string())
}

#[tokio::test]
async fn plugins_of_too_many_parts_are_refused_before_they_are_compiled() {
    let folder = tempfile::tempdir().unwrap();
    let cache = cache_in(&folder);
    let nested = |count: usize| {
        let inner = instances(2, "");
        let outer = "(instance (instantiate $c))".repeat(count);
        format!("(component $c {inner}) {outer}")
    };
    for (body, refusal) in [
        (instances(64, ""), None),
        (
            instances(65, ""),
            Some(
                "it has 65 core instances, but a plugin may have at most 64: compose it of fewer components",
            ),
        ),
        (nested(32), None),
        (
            nested(33),
            Some("it has 66 core instances, but a plugin may have at most 64"),
        ),
        (instances(4, "(memory 1)"), None),
        (
            instances(5, "(memory 1) (table 1 funcref) (table 1 funcref)"),
            Some(
                "it has 5 memories, but a plugin may have at most 4, and 10 tables, but a plugin may have at most 8: compose it \
                 of fewer components, each of which brings modules of its own",
            ),
        ),
        (
            instances(1, "(table 20001 funcref)"),
            Some(
                "it has 20001 entries in a table at its start, but a plugin may have at most 20000: leave libraries out",
            ),
        ),
        (
            instances(1, "(memory 513)"),
            Some(
                "it has 33619968 bytes of memory at its start, but a plugin may have at most 33554432: give it less static data",
            ),
        ),
    ] {
        let compiled = compile(&cache, Profile::Plugin, &body).await;
        let is_as_expected = match (&compiled, refusal) {
            (Err(error), Some(refusal)) => error.contains(refusal),
            (compiled, refusal) => compiled.is_ok() && refusal.is_none(),
        };
        assert!(is_as_expected, "{compiled:?} and not {refusal:?}: {body}");
    }
}

#[tokio::test]
async fn services_are_alone_in_their_process_and_have_as_many_parts_as_they_like() {
    let folder = tempfile::tempdir().unwrap();
    let cache = cache_in(&folder);
    let many = instances(65, "(memory 1)");
    assert_eq!(compile(&cache, Profile::Service, &many).await, Ok(()));
}
