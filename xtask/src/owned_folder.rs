//! Temporary folders with the number of the process that made them: what a killed run left is found by it.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Result;

use crate::processes::{self, read_pid};

/// The file with the number.
const OWNER: &str = "owner";

/// A new folder of this process, whose name begins with `prefix`; [`remove`] takes it away.
pub(crate) fn create(prefix: &str) -> Result<PathBuf> {
    let folder = tempfile::Builder::new().prefix(prefix).tempdir()?;
    fs::write(folder.path().join(OWNER), std::process::id().to_string())?;
    Ok(folder.keep())
}

/// The folders that earlier runs left whose process was killed.
pub(crate) fn of_dead_owners(prefix: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(std::env::temp_dir()).into_iter().flatten();
    let ours = entries
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
