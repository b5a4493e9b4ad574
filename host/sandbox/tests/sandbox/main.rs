//! The sandbox with the real compiler: `SUPERVISOR_DIST` names the layout folder that contains it; without it, an
//! earlier build is looked for.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test fails by panicking"
)]

mod loading;
mod parts;
mod proposals;

use std::path::{Path, PathBuf};

use compiled_code::{Cache, Limits};

fn compiler() -> PathBuf {
    let dist = std::env::var_os("SUPERVISOR_DIST").map(PathBuf::from);
    let this = std::env::current_exe().unwrap();
    let built = this.ancestors().map(|folder| folder.join("dist"));
    dist.into_iter()
        .chain(built)
        .map(|dist: PathBuf| Path::new(&dist).join("bin/supervisor-compile"))
        .find(|path| path.is_file())
        .expect("no compiler: run `cargo xtask build`, or set SUPERVISOR_DIST")
}

fn cache_in(folder: &tempfile::TempDir) -> Cache {
    let folder = folder.path().join("compiled");
    Cache::new(folder, compiler(), Limits::default()).unwrap()
}
