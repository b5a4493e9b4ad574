//! Which compiled code loads, and into which engine.

use std::fs;
use std::path::PathBuf;

use compiled_code::{Cache, Profile, Settings, Source};
use sandbox::{deserialize, engine_config};
use wasmtime::Engine;

use crate::cache_in;

const PROFILES: [Profile; 2] = [Profile::Plugin, Profile::Service];

async fn compiled(cache: &Cache, profile: Profile) -> PathBuf {
    let wasm = wat::parse_str(
        "(component (core module $m (memory 1) (func (export \"f\") (loop br 0)))
           (core instance $i (instantiate $m))
           (func (export \"f\") (canon lift (core func $i \"f\"))))",
    )
    .unwrap();
    let source = Source::new("some.wasm", &wasm);
    cache.compile_file(&source, profile).await.unwrap()
}

#[tokio::test]
async fn code_loads_into_an_engine_of_its_own_profile_alone() {
    let folder = tempfile::tempdir().unwrap();
    let cache = cache_in(&folder);
    for profile in PROFILES {
        let file = compiled(&cache, profile).await;
        for other in PROFILES {
            let engine = Engine::new(&engine_config(other)).unwrap();
            let loads = deserialize(&engine, &file).is_ok();
            assert_eq!(loads, profile == other, "{profile} into {other}");
        }
    }
}

#[tokio::test]
async fn code_that_was_damaged_is_not_loaded() {
    let folder = tempfile::tempdir().unwrap();
    let cache = cache_in(&folder);
    let file = compiled(&cache, Profile::Service).await;
    let engine = Engine::new(&engine_config(Profile::Service)).unwrap();
    let sound = fs::read(&file).unwrap();
    for place in [0, sound.len() / 2, sound.len() - 1] {
        let mut damaged = sound.clone();
        damaged[place] ^= 0x10;
        fs::write(&file, damaged).unwrap();
        let refused = deserialize(&engine, &file).err().unwrap().to_string();
        let expected = "is damaged, or was not compiled on this device";
        assert!(refused.contains(expected), "byte {place}: {refused}");
    }
    fs::write(&file, &sound).unwrap();
    assert!(deserialize(&engine, &file).is_ok());
}

/// The cache recognizes code of an earlier version of wasmtime by the settings. It does not contain wasmtime
/// itself.
#[test]
fn the_settings_name_the_version_of_wasmtime_that_is_built_in() {
    let lock: toml::Table = include_str!("../../../../Cargo.lock").parse().unwrap();
    let versions: Vec<&str> = lock["package"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|package| package["name"].as_str() == Some("wasmtime"))
        .map(|package| package["version"].as_str().unwrap())
        .collect();
    for profile in PROFILES {
        assert_eq!(
            versions,
            [Settings::for_profile(profile).wasmtime],
            "{profile}"
        );
    }
}
