//! Plugins that were built for a version of the interface, such as `1.4` (`tests/compatibility/1.4`).

use std::fs;
use std::io::Read as _;
use std::path::PathBuf;

/// Returns the component with that name, such as `hello_c`.
///
/// # Panics
/// When there is none.
#[must_use]
pub fn kept_plugin(version: &str, name: &str) -> Vec<u8> {
    let file = folder(version).join(format!("{name}.wasm"));
    if let Ok(component) = fs::read(&file) {
        return component;
    }
    let compressed = fs::File::open(file.with_extension("wasm.gz")).expect("a kept plugin");
    let mut component = Vec::new();
    let mut reader = flate2::read::GzDecoder::new(compressed);
    reader
        .read_to_end(&mut component)
        .expect("a file that gzip has compressed");
    component
}

/// Returns the names of all plugins of a version, sorted.
///
/// # Panics
/// When there is no such version.
#[must_use]
pub fn kept_plugins(version: &str) -> Vec<String> {
    let files = fs::read_dir(folder(version)).expect("the version's folder");
    let mut names: Vec<String> = files
        .filter_map(|file| {
            let name = file.ok()?.file_name().into_string().ok()?;
            let name = name.strip_suffix(".gz").unwrap_or(&name);
            Some(name.strip_suffix(".wasm")?.to_owned())
        })
        .collect();
    names.sort();
    names
}

fn folder(version: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("compatibility")
        .join(version)
}
