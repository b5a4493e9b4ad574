//! How records are read and written.

use std::fs::{self, File};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fs::OFlags;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Services of one app, which share a group, read each other's states and ports.
const RECORD_MODE: u32 = 0o640;
/// What is no secret of anybody's.
const OPEN_RECORD_MODE: u32 = 0o644;
/// The longest record that is read, in bytes.
const MAX_RECORD: u64 = 4 << 20;

/// Reads a JSON record; `None` where there is no such file.
///
/// The folder may be a service's to write into: a link is not followed, and a pipe not waited for.
///
/// # Errors
/// Where it cannot be read, is longer than a record can be, or does not parse.
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

/// Opens a plain file to read; what a service made of it, a link or a pipe, is refused.
///
/// # Errors
/// Where it cannot be opened, or is no plain file.
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

/// Writes a JSON record so that readers see the old one or the new one, also after a power cut.
///
/// # Errors
/// Where it cannot be written; the old one is then still there.
pub fn write<T: Serialize>(path: &Path, value: &T) -> io::Result<()> {
    put(path, value, true, RECORD_MODE)
}

/// As [`write()`], but a power cut may take it back: for what is made anew after a reboot.
///
/// # Errors
/// As there.
pub fn write_volatile<T: Serialize>(path: &Path, value: &T) -> io::Result<()> {
    put(path, value, false, RECORD_MODE)
}

/// As [`write_volatile`], for the eyes of all services.
///
/// # Errors
/// As there.
pub fn write_for_services<T: Serialize>(path: &Path, value: &T) -> io::Result<()> {
    put(path, value, false, OPEN_RECORD_MODE)
}

fn put<T: Serialize>(path: &Path, value: &T, durable: bool, mode: u32) -> io::Result<()> {
    let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(io::ErrorKind::InvalidInput.into());
    };
    let bytes = serde_json::to_vec_pretty(value)?;
    // Nobody else's: the engine and a service's process may write in one folder, and several tasks of the engine the same
    // record.
    static WRITES: AtomicU64 = AtomicU64::new(0);
    let unfinished = folder.join(format!(
        ".{}.{}.{}",
        name.to_string_lossy(),
        std::process::id(),
        WRITES.fetch_add(1, Ordering::Relaxed)
    ));
    let write = || {
        // One that a kill left, or that a service put there: what is made is new, and nobody's but ours.
        match fs::remove_file(&unfinished) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let mut file = File::options()
            .write(true)
            .create_new(true)
            .mode(mode)
            .open(&unfinished)?;
        // Whatever the process takes away from modes.
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
