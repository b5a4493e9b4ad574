//! Temporary folders with the number of the process that created them, by which the remains of a killed run are found.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Result;

use crate::processes::{self, read_pid};

/// The file with the number.
const OWNER: &str = "owner";
/// Linux's file system in memory.
const MEMORY: &str = "/dev/shm";

/// Creates a folder of this process, whose name begins with `prefix`; [`remove`] deletes it.
pub(crate) fn create(prefix: &str) -> Result<PathBuf> {
    create_in(&std::env::temp_dir(), prefix)
}

/// Like [`create`], but in memory if there is room for this many bytes.
pub(crate) fn create_in_memory(prefix: &str, bytes: u64) -> Result<PathBuf> {
    let memory = Path::new(MEMORY);
    let has_room = rustix::fs::statvfs(memory)
        .is_ok_and(|system| system.f_bavail.saturating_mul(system.f_frsize) >= bytes);
    if has_room && let Ok(folder) = create_in(memory, prefix) {
        return Ok(folder);
    }
    create(prefix)
}

fn create_in(parent: &Path, prefix: &str) -> Result<PathBuf> {
    let folder = tempfile::Builder::new().prefix(prefix).tempdir_in(parent)?;
    fs::write(folder.path().join(OWNER), std::process::id().to_string())?;
    Ok(folder.keep())
}

/// Returns the folders of earlier runs whose process was killed.
pub(crate) fn find_without_owner(prefix: &str) -> Vec<PathBuf> {
    let parents = [std::env::temp_dir(), MEMORY.into()];
    let entries = parents
        .iter()
        .filter_map(|parent| fs::read_dir(parent).ok());
    let ours = entries
        .flatten()
        .flatten()
        .filter(|entry| entry.file_name().to_string_lossy().starts_with(prefix))
        .map(|entry| entry.path());
    let is_left = |folder: &PathBuf| {
        read_pid(&folder.join(OWNER)).is_some_and(|owner| !processes::is_xtask(owner))
    };
    ours.filter(is_left)
        .inspect(|folder| println!("cleaning up after an earlier run in {}", folder.display()))
        .collect()
}

/// Removes such a folder, as far as that is possible.
pub(crate) fn remove(folder: &Path) {
    if let Err(error) = fs::remove_dir_all(folder)
        && folder.exists()
    {
        eprintln!("failed to remove `{}`: {error}", folder.display());
    }
}
