//! The lock on the state folder, which only one supervisor holds at a time.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::{Duration, Instant};

use crate::copied;
use crate::error::StoreError;

/// The name, within the state folder, of the file that is locked while a supervisor runs on it.
pub const LOCK_NAME: &str = "supervisor.lock";

/// How long the lock of a process that has just ended may remain: a process that is being started
/// has its parent's open files for a moment, and with them the lock.
const OUTLIVES: Duration = Duration::from_millis(250);
const LOOK_AGAIN: Duration = Duration::from_millis(5);

/// Locks the folder. The lock is released when the process ends, for whatever reason.
pub(crate) fn lock(folder: &Path) -> Result<File, StoreError> {
    let path = folder.join(LOCK_NAME);
    let mut file = open_lock(folder, &path).map_err(StoreError::file("open", &path))?;
    match try_lock(&file) {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            let mut text = String::new();
            // Only for the message, and at most as long as a number.
            let _ = (&mut file).take(16).read_to_string(&mut text);
            return Err(StoreError::InUse {
                folder: folder.to_owned(),
                pid: text.trim().parse().ok(),
            });
        }
        Err(TryLockError::Error(error)) => return Err(StoreError::file("lock", &path)(error)),
    }
    // Only for messages; on a full disk there is no room for it.
    let _ = file
        .set_len(0)
        .and_then(|()| file.rewind())
        .and_then(|()| writeln!(file, "{}", std::process::id()));
    Ok(file)
}

/// Opens the file for the lock: if nothing can be written, without changing it, and if there is none, the folder
/// itself.
fn open_lock(folder: &Path, path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    let options = options
        .read(true)
        .write(true)
        .create(true)
        // Its contents belong to another supervisor until we hold the lock.
        .truncate(false)
        .mode(0o600);
    match options.open(path) {
        Err(error) if copied::refuses_writes(&error) => match File::open(path) {
            Err(missing) if missing.kind() == io::ErrorKind::NotFound => File::open(folder),
            opened => opened,
        },
        opened => opened,
    }
}

fn try_lock(file: &File) -> Result<(), TryLockError> {
    let deadline = Instant::now() + OUTLIVES;
    loop {
        match file.try_lock() {
            Err(TryLockError::WouldBlock) if Instant::now() < deadline => {
                std::thread::sleep(LOOK_AGAIN);
            }
            other => return other,
        }
    }
}
