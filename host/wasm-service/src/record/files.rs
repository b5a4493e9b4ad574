//! Reading and writing records.

use std::fs::{self, File};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fs::OFlags;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// The services of one app share a group, and read each other's states and ports.
const RECORD_MODE: u32 = 0o640;
/// The mode of records that are not secret.
const OPEN_RECORD_MODE: u32 = 0o644;
/// The longest record that is read, in bytes.
const MAX_RECORD: u64 = 4 << 20;

/// Reads a JSON record; `None` if there is no such file.
///
/// A service may write into the folder: so links are not followed, and pipes are not waited for.
///
/// # Errors
/// If it cannot be read, is too long for a record, or does not parse.
pub fn read<T: DeserializeOwned>(path: &Path) -> io::Result<Option<T>> {
    let file = match open_plain(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let mut bytes = Vec::new();
    file.take(MAX_RECORD + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MAX_RECORD {
        return Err(io::Error::new(
            io::ErrorKind::InvalidData,
            "the record is too long",
        ));
    }
    let value = serde_json::from_slice(&bytes)?;
    Ok(Some(value))
}

/// Opens a plain file to read; a link or a pipe that a service put there is refused.
///
/// # Errors
/// If it cannot be opened, or is not a plain file.
pub fn open_plain(path: &Path) -> io::Result<File> {
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let file = File::options()
        .read(true)
        .custom_flags(flags.bits() as i32)
        .open(path)?;
    if file.metadata()?.is_file() {
        return Ok(file);
    }
    Err(io::Error::new(
        io::ErrorKind::InvalidData,
        "it is not a plain file",
    ))
}

/// Writes a JSON record so that readers see either the old or the new one, even after a power cut.
///
/// # Errors
/// If it cannot be written; the old one then still exists.
pub fn write<T: Serialize>(path: &Path, value: &T) -> io::Result<()> {
    put(path, value, true, RECORD_MODE)
}

/// As [`write()`], but a power cut may undo it: for records that are created again after a reboot.
///
/// # Errors
/// As for [`write()`].
pub fn write_volatile<T: Serialize>(path: &Path, value: &T) -> io::Result<()> {
    put(path, value, false, RECORD_MODE)
}

/// As [`write_volatile`], readable for all services.
///
/// # Errors
/// As for [`write()`].
pub fn write_for_services<T: Serialize>(path: &Path, value: &T) -> io::Result<()> {
    put(path, value, false, OPEN_RECORD_MODE)
}

fn put<T: Serialize>(path: &Path, value: &T, durable: bool, mode: u32) -> io::Result<()> {
    let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(io::ErrorKind::InvalidInput.into());
    };
    let bytes = serde_json::to_vec_pretty(value)?;
    // A unique name: the engine and a service's process may write into one folder, and several tasks of the engine the
    // same record.
    static WRITES: AtomicU64 = AtomicU64::new(0);
    let unfinished = folder.join(format!(
        ".{}.{}.{}",
        name.to_string_lossy(),
        std::process::id(),
        WRITES.fetch_add(1, Ordering::Relaxed)
    ));
    let write = || {
        // Left by a kill, or put there by a service: the file has to be new and only ours.
        match fs::remove_file(&unfinished) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let mut file = File::options()
            .write(true)
            .create_new(true)
            .mode(mode)
            .open(&unfinished)?;
        // Independent of the process's umask.
        file.set_permissions(fs::Permissions::from_mode(mode))?;
        file.write_all(&bytes)?;
        if durable {
            file.sync_data()?;
        }
        fs::rename(&unfinished, path)?;
        if durable {
            File::open(folder)?.sync_data()?;
        }
        Ok(())
    };
    write().inspect_err(|_| {
        let _ = fs::remove_file(&unfinished);
    })
}

#[cfg(test)]
mod tests {
    use super::super::{STATE, State, Status};
    use super::*;

    #[test]
    fn records_come_back_as_they_were_written() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(STATE);
        assert_eq!(read::<State>(&path).unwrap(), None);
        let state = State {
            status: Status::Restarting,
            exit_code: Some(3),
            ..State::created()
        };
        write(&path, &state).unwrap();
        assert_eq!(read::<State>(&path).unwrap(), Some(state));
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_record_that_several_write_at_once_is_one_of_theirs() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(STATE);
        std::thread::scope(|threads| {
            for exit_code in 0..8 {
                let path = &path;
                threads.spawn(move || {
                    let state = State {
                        exit_code: Some(exit_code),
                        ..State::created()
                    };
                    for _ in 0..100 {
                        write_volatile(path, &state).unwrap();
                        assert!(read::<State>(path).unwrap().is_some());
                    }
                });
            }
        });
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn damaged_records_are_errors() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(STATE);
        for damaged in ["", "{", "[]", "{\"status\":\"flying\"}"] {
            fs::write(&path, damaged).unwrap();
            assert!(read::<State>(&path).is_err(), "{damaged:?}");
        }
        fs::write(&path, vec![b' '; MAX_RECORD as usize + 1]).unwrap();
        assert!(read::<State>(&path).is_err());
    }
}
