//! The paths of the programs and components under test.

use std::path::{Path, PathBuf};

/// Returns the root of the repository.
#[must_use]
pub fn repository() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .unwrap_or(Path::new("/"))
}

/// Returns the layout of `cargo xtask build`.
#[must_use]
pub fn distribution() -> PathBuf {
    match std::env::var_os("SUPERVISOR_DIST") {
        Some(folder) => folder.into(),
        None => target_folder().join("dist"),
    }
}

/// Returns a component built from a crate of `examples/` or `tests/`, by the crate's name.
///
/// # Panics
/// If it has not been built.
#[must_use]
pub fn guest(name: &str) -> PathBuf {
    let folder = match std::env::var_os("SUPERVISOR_TEST_GUESTS") {
        Some(folder) => folder.into(),
        None => target_folder().join("wasm32-wasip2/wasm"),
    };
    let file = folder.join(format!("{name}.wasm"));
    assert!(
        file.is_file(),
        "`{}` is missing: run the tests with `cargo xtask test`, which builds it",
        file.display()
    );
    file
}

fn target_folder() -> PathBuf {
    match std::env::var_os("CARGO_TARGET_DIR") {
        Some(folder) => folder.into(),
        None => repository().join("target"),
    }
}
