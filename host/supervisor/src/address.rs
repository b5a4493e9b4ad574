//! The file `address` in the state folder: the addresses on which the running supervisor listens,
//! one a line. Other programs use it to find a supervisor that chose a free port.

use std::fs::{self, File, OpenOptions};
use std::io::Write as _;
use std::net::SocketAddr;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

const FILE: &str = "address";

/// The file, which exists for as long as the supervisor listens.
pub(crate) struct AddressFile(PathBuf);

impl AddressFile {
    /// Writes the file. The caller owns the state folder: it has opened the store.
    ///
    /// # Errors
    /// If it cannot be written.
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
            // Renamed into place, so that it is never read half written.
            fs::rename(&new, &file)
        };
        write().with_context(|| format!("failed to write `{}`", file.display()))?;
        Ok(AddressFile(file))
    }
}

impl Drop for AddressFile {
    fn drop(&mut self) {
        // If it is left behind, it does no harm: readers check first whether a supervisor runs.
        let _ = fs::remove_file(&self.0);
    }
}

/// Removes the file of a killed supervisor, so that its address is not mistaken for ours.
pub(crate) fn forget(state_dir: &Path) {
    let _ = fs::remove_file(state_dir.join(FILE));
}

/// Returns the address of the supervisor that runs on this state folder; `None` if none runs, or if
/// it does not listen yet.
pub(crate) fn find_running(state_dir: &Path) -> Option<SocketAddr> {
    let lock = File::open(state_dir.join(store::LOCK_NAME)).ok()?;
    match flock(&lock, FlockOperation::NonBlockingLockShared) {
        Err(Errno::WOULDBLOCK) => {}
        // The lock is free; ours is released when the file is closed.
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
    fn the_address_is_found_only_while_a_supervisor_holds_the_folder() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path();
        assert_eq!(find_running(path), None);
        let store = store::Store::open(path).unwrap();
        assert_eq!(find_running(path), None);
        let address = "127.0.0.1:1234".parse().unwrap();
        let file = AddressFile::write(path, &[address]).unwrap();
        assert_eq!(find_running(path), Some(address));
        drop(store);
        // The file of a killed supervisor does not count. A program that another test is starting has this test's open
        // files for a moment, and with them the lock.
        let deadline = Instant::now() + Duration::from_secs(60);
        while let Some(address) = find_running(path) {
            assert!(Instant::now() < deadline, "{address}");
            std::thread::sleep(Duration::from_millis(5));
        }
        drop(file);
        assert!(!path.join(FILE).exists());
    }
}
