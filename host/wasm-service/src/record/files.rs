//! Reading and writing records.

use std::fs::{self, File};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;
use secure_fs::random_hex;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// The services of one app share a group, and read each other's states and ports.
const RECORD_MODE: u32 = 0o640;
/// The mode of records that are not secret.
const OPEN_RECORD_MODE: u32 = 0o644;
/// The longest record that is read, in bytes.
const MAX_RECORD: u64 = 4 << 20;
/// How many names are tried for an unfinished record.
const NAMES: usize = 4;

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
    let (unfinished, mut file) = create_beside(folder, &name.to_string_lossy(), mode, random_hex)?;
    let mut write = || {
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

/// Creates a file for an unfinished record, under a name that nobody can guess: several may write the same record, and
/// a service that may write into the folder must not occupy the names of the engine's files.
fn create_beside(
    folder: &Path,
    name: &str,
    mode: u32,
    mut random: impl FnMut() -> io::Result<String>,
) -> io::Result<(PathBuf, File)> {
    let mut tries = 0;
    loop {
        tries += 1;
        let path = folder.join(format!(".{name}.{}", random()?));
        // New, so it is only ours, and not a link to another place.
        let created = File::options()
            .write(true)
            .create_new(true)
            .mode(mode)
            .open(&path);
        match created {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && tries < NAMES => {}
            created => return Ok((path, created?)),
        }
    }
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
    fn a_service_that_occupies_names_in_the_folder_does_not_block_the_engines_records() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(STATE);
        // Names that other writes of this process could have, if it counted them.
        for number in 0..5000 {
            let name = format!(".{STATE}.{}.{number}", std::process::id());
            fs::create_dir(folder.path().join(name)).unwrap();
        }
        write(&path, &State::created()).unwrap();
        assert_eq!(read::<State>(&path).unwrap(), Some(State::created()));
    }

    #[test]
    fn a_name_that_exists_is_left_alone_and_another_one_is_tried() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join(".state.json.folder")).unwrap();
        fs::write(folder.path().join(".state.json.file"), "theirs").unwrap();
        let create = |names: &[&str]| {
            let mut names = names.iter().map(|name| (*name).to_owned());
            let next = || {
                names
                    .next()
                    .ok_or_else(|| io::Error::other("no more names"))
            };
            create_beside(folder.path(), STATE, RECORD_MODE, next)
        };
        let (path, _file) = create(&["folder", "file", "free"]).unwrap();
        assert_eq!(path, folder.path().join(".state.json.free"));
        let theirs = fs::read_to_string(folder.path().join(".state.json.file"));
        assert_eq!(theirs.unwrap(), "theirs");
        // It ends, however many names exist.
        let error = create(&["file"; NAMES]).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::AlreadyExists);
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
