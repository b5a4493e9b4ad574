//! Compiled components, kept from one test to the next: each supervisor under test has its own state folder, and would
//! otherwise compile the same plugins and guests again.
//!
//! A compiled file's name contains the digest of its component, of the compiler's settings and of its content, so a
//! kept file is exactly what a test would compile. A device only runs files that were compiled with its own key, so the
//! devices of all tests have the same key.

use std::collections::BTreeMap;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::SystemTime;
use std::{fs, io, process};

use crate::layout::distribution;

/// Puts files that earlier tests compiled into a new state folder.
pub(crate) fn bring(state_dir: &Path) {
    let folder = state_dir.join("compiled");
    let mut private = fs::DirBuilder::new();
    let made = private.recursive(true).mode(0o700).create(&folder);
    if made.is_ok() && make_key().is_ok() && fs::hard_link(key(), folder.join("key")).is_ok() {
        link_all(files_of_last_settings(), &folder);
    }
}

/// Returns the kept files of the most recent settings: devices load no others, and some tests have small disks.
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

/// Creates the key if there is none yet.
fn make_key() -> io::Result<()> {
    if key().is_file() {
        return Ok(());
    }
    fs::create_dir_all(kept())?;
    let new = kept().join(format!("new-key-{}", process::id()));
    // The length is prescribed by the cache; keys of tests protect nothing.
    fs::write(&new, [0x5a; 64])?;
    fs::set_permissions(&new, fs::Permissions::from_mode(0o600))?;
    let _ = fs::hard_link(&new, key());
    fs::remove_file(new)
}

/// Keeps the files that this test compiled.
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

/// Links the files of components, and ignores failures: a missing file is compiled again, and an existing one is the same.
/// Functions, which a device in developer mode keeps, are not for other devices.
fn link_all(files: impl IntoIterator<Item = PathBuf>, to: &Path) {
    for file in files {
        if let Some(name) = file.file_name()
            && file.extension().is_some_and(|end| end == "cwasm")
            && !name.as_encoded_bytes().starts_with(b"functions-")
        {
            let _ = fs::hard_link(&file, to.join(name));
        }
    }
}
