//! Compiled components, kept from one test to the next: each supervisor under test has a state folder of
//! its own, and would otherwise compile the same plugins and guests again.
//!
//! A compiled file's name holds the digest of its component, of the compiler's settings and of what is in it, so
//! what is kept can be no other than what a test would compile. A device runs what was compiled with its own key alone,
//! so that the devices of all tests have the same one.

use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::{fs, io, process};

use crate::layout::distribution;

/// Puts what earlier tests compiled into a new state folder.
pub(crate) fn bring(state_dir: &Path) {
    let folder = state_dir.join("compiled");
    let mut private = fs::DirBuilder::new();
    let made = private.recursive(true).mode(0o700).create(&folder);
    if made.is_ok() && make_key().is_ok() && fs::hard_link(key(), folder.join("key")).is_ok() {
        link_all(&kept(), &folder);
    }
}

fn key() -> PathBuf {
    kept().join("key")
}

/// The test that is first makes it.
fn make_key() -> io::Result<()> {
    if key().is_file() {
        return Ok(());
    }
    fs::create_dir_all(kept())?;
    let new = kept().join(format!("new-key-{}", process::id()));
    // Its length is the cache's; nobody guards anything by a key of tests.
    fs::write(&new, [0x5a; 64])?;
    fs::set_permissions(&new, fs::Permissions::from_mode(0o600))?;
    let _ = fs::hard_link(&new, key());
    fs::remove_file(new)
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
