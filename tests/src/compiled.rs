//! Compiled components, kept from one test to the next: each supervisor under test has a state folder of
//! its own, and would otherwise compile the same plugins and guests again.
//!
//! A compiled file's name holds the digest of its component, of the compiler's settings and of what is in it, so
//! what is kept can be no other than what a test would compile. A device runs what was compiled with its own key alone,
//! so that the devices of all tests have the same one.

use std::collections::BTreeMap;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::SystemTime;
use std::{fs, io, process};

use crate::layout::distribution;

/// Puts what earlier tests compiled into a new state folder.
pub(crate) fn bring(state_dir: &Path) {
    let folder = state_dir.join("compiled");
    let mut private = fs::DirBuilder::new();
    let made = private.recursive(true).mode(0o700).create(&folder);
    if made.is_ok() && make_key().is_ok() && fs::hard_link(key(), folder.join("key")).is_ok() {
        link_all(files_of_last_settings(), &folder);
    }
}

/// What is kept of the settings that were used last: what others compiled no device loads, and some tests have small disks.
fn files_of_last_settings() -> Vec<PathBuf> {
    let mut by_settings: BTreeMap<(String, String), Vec<PathBuf>> = BTreeMap::new();
    let mut last: BTreeMap<String, (SystemTime, String)> = BTreeMap::new();
    for file in fs::read_dir(kept()).into_iter().flatten().flatten() {
        let used = file.metadata().and_then(|about| about.modified());
        let name = file.file_name();
        let mut parts = name.to_str().unwrap_or_default().split('-').skip(1);
        let (Ok(used), Some(profile), Some(settings)) = (used, parts.next(), parts.next()) else {
            continue;
        };
        let (profile, settings) = (profile.to_owned(), settings.to_owned());
        let latest = last
            .entry(profile.clone())
            .or_insert((used, settings.clone()));
        if used > latest.0 {
            *latest = (used, settings.clone());
        }
        let files = by_settings.entry((profile, settings)).or_default();
        files.push(file.path());
    }
    let last = last
        .into_iter()
        .map(|(profile, (_, settings))| (profile, settings));
    last.filter_map(|key| by_settings.remove(&key))
        .flatten()
        .collect()
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
        let files = fs::read_dir(state_dir.join("compiled"));
        let files = files.into_iter().flatten().flatten();
        link_all(files.map(|file| file.path()), &kept());
    }
}

fn kept() -> PathBuf {
    distribution().with_file_name("test-compiled")
}

/// What cannot be linked, or is there already, is compiled anew, or was.
fn link_all(files: impl IntoIterator<Item = PathBuf>, to: &Path) {
    for file in files {
        if let Some(name) = file.file_name()
            && file.extension().is_some_and(|end| end == "cwasm")
        {
            let _ = fs::hard_link(&file, to.join(name));
        }
    }
}
