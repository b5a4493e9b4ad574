//! The file `address` in the state folder: where the running supervisor listens, an address a line. It
//! is how others find a supervisor that took a free port.

use std::fs::{self, File, OpenOptions};
use std::io::Write as _;
use std::net::SocketAddr;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

const FILE: &str = "address";

/// The file, for as long as the supervisor listens.
pub(crate) struct AddressFile(PathBuf);

impl AddressFile {
    /// Writes it. The state folder is the caller's: it holds the store.
    ///
    /// # Errors
    /// Where it cannot be written.
    pub(crate) fn write(state_dir: &Path, addresses: &[SocketAddr]) -> Result<Self> {
        let text: String = addresses
            .iter()
            .map(|address| format!("{address}\n"))
            .collect();
        let (new, file) = (state_dir.join("address.new"), state_dir.join(FILE));
        let write = || {
            let mut options = OpenOptions::new();
            options.write(true).create(true).truncate(true).mode(0o600);
            options.open(&new)?.write_all(text.as_bytes())?;
            // Renamed into its place, so that nobody reads half of it.
            fs::rename(&new, &file)
        };
        write().with_context(|| format!("failed to write `{}`", file.display()))?;
        Ok(AddressFile(file))
    }
}

impl Drop for AddressFile {
    fn drop(&mut self) {
        // Left behind it does no harm: readers ask first whether a supervisor runs.
        let _ = fs::remove_file(&self.0);
    }
}

/// Removes what a killed supervisor left, so that nobody takes its address for ours.
pub(crate) fn forget(state_dir: &Path) {
    let _ = fs::remove_file(state_dir.join(FILE));
}

/// Where the supervisor that holds this state folder listens; `None` where none runs, or does not
/// listen yet.
pub(crate) fn of_running(state_dir: &Path) -> Option<SocketAddr> {
    let lock = File::open(state_dir.join(store::LOCK_NAME)).ok()?;
    match flock(&lock, FlockOperation::NonBlockingLockShared) {
        Err(Errno::WOULDBLOCK) => {}
        // Nobody holds it; our lock goes as the file is closed.
        _ => return None,
    }
    let addresses = fs::read_to_string(state_dir.join(FILE)).ok()?;
    addresses.lines().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;

    #[test]
    fn the_address_is_told_only_while_a_supervisor_holds_the_folder() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path();
        assert_eq!(of_running(path), None);
        let store = store::Store::open(path).unwrap();
        assert_eq!(of_running(path), None);
        let address = "127.0.0.1:1234".parse().unwrap();
        let file = AddressFile::write(path, &[address]).unwrap();
        assert_eq!(of_running(path), Some(address));
        drop(store);
        // What a killed supervisor left does not count. A program that another test is starting has this test's open files
        // for a moment, and with them the lock.
        let deadline = Instant::now() + Duration::from_secs(60);
        while let Some(address) = of_running(path) {
            assert!(Instant::now() < deadline, "{address}");
            std::thread::sleep(Duration::from_millis(5));
        }
        drop(file);
        assert!(!path.join(FILE).exists());
    }
}
