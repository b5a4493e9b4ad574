//! Compiled components, kept from one test to the next: each supervisor under test has a state folder of
//! its own, and would otherwise compile the same plugins and guests again.
//!
//! A compiled file's name holds the digest of its component, of the compiler's settings and of what is in it, so
//! what is kept can be no other than what a test would compile.

use std::fs;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use crate::layout::distribution;

/// Puts what earlier tests compiled into a new state folder.
pub(crate) fn bring(state_dir: &Path) {
    let folder = state_dir.join("compiled");
    let mut private = fs::DirBuilder::new();
    let made = private.recursive(true).mode(0o700).create(&folder);
    if made.is_ok() {
        link_all(&kept(), &folder);
    }
}

/// Keeps what this test compiled.
pub(crate) fn keep(state_dir: &Path) {
    if fs::create_dir_all(kept()).is_ok() {
        link_all(&state_dir.join("compiled"), &kept());
    }
}

fn kept() -> PathBuf {
    distribution().with_file_name("test-compiled")
}

/// What cannot be linked, or is there already, is compiled anew, or was.
fn link_all(from: &Path, to: &Path) {
    let Ok(files) = fs::read_dir(from) else {
        return;
    };
    for file in files.flatten() {
        if file.path().extension().is_some_and(|end| end == "cwasm") {
            let _ = fs::hard_link(file.path(), to.join(file.file_name()));
        }
    }
}
