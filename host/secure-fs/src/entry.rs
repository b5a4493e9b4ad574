//! The entries of a folder, by name.

use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, PROC_SUPER_MAGIC};

use crate::SecureDir;
use crate::name::check_name;

/// A file by its name in a folder; it does not have to exist.
#[derive(Debug, Clone)]
pub struct SecureFile {
    folder: SecureDir,
    name: String,
}

impl SecureFile {
    /// Returns its path, for messages.
    #[must_use]
    pub fn path(&self) -> PathBuf {
        self.folder.path().join(&self.name)
    }

    /// As [`SecureDir::read`].
    ///
    /// # Errors
    /// As [`SecureDir::read`].
    pub fn read(&self, longest: u64) -> io::Result<Option<Vec<u8>>> {
        self.folder.read(&self.name, longest)
    }

    /// As [`SecureDir::replace`].
    ///
    /// # Errors
    /// As [`SecureDir::replace`].
    pub fn replace(&self, bytes: &[u8]) -> io::Result<()> {
        self.folder.replace(&self.name, bytes)
    }

    /// As [`SecureDir::remove`].
    ///
    /// # Errors
    /// As [`SecureDir::remove`].
    pub fn remove(&self) -> io::Result<()> {
        self.folder.remove(&self.name)
    }
}

impl SecureDir {
    /// Returns the file `name` in this folder, whether or not it exists.
    #[must_use]
    pub fn file(&self, name: &str) -> SecureFile {
        SecureFile {
            folder: self.clone(),
            name: name.to_owned(),
        }
    }

    /// Reads the content of the file `name`; `None` if there is no such file.
    ///
    /// # Errors
    /// Those of the operating system; `InvalidData` if it is not a plain file, or is longer than `longest` bytes.
    pub fn read(&self, name: &str, longest: u64) -> io::Result<Option<Vec<u8>>> {
        match read_bounded(self, name, longest) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            read => read.map(Some),
        }
    }

    /// Writes the file `name` in one step, only for its owner: readers see either the previous content or all of
    /// `bytes`, even after a power cut.
    ///
    /// # Errors
    /// Those of the operating system; the file is then unchanged.
    pub fn replace(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        check_name(name)?;
        let beside = format!("{name}.new");
        // A file left over after a kill. The new file is created from scratch, so nobody has it open, and it is not a
        // link to another place.
        self.remove(&beside)?;
        let flags =
            OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let write = || {
            let file = rustix::fs::openat(&*self.fd, &beside, flags, Mode::from_raw_mode(0o600))?;
            let mut file = File::from(file);
            file.write_all(bytes)?;
            file.sync_all()?;
            rustix::fs::renameat(&*self.fd, &beside, &*self.fd, name)?;
            Ok(())
        };
        write().inspect_err(|_: &io::Error| {
            let _ = self.remove(&beside);
        })
    }

    /// Removes the file `name`, if it exists.
    ///
    /// # Errors
    /// Those of the operating system.
    pub fn remove(&self, name: &str) -> io::Result<()> {
        check_name(name)?;
        match rustix::fs::unlinkat(&*self.fd, name, AtFlags::empty()) {
            Ok(()) | Err(rustix::io::Errno::NOENT) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

/// Reads the content of the plain file `name` in `folder`. A link is not followed, a pipe does not block, and at most
/// `longest` bytes are accepted, whatever the file's stated length.
///
/// # Errors
/// Those of the operating system; `InvalidData` if it is not a plain file, or is longer than `longest` bytes.
pub fn read_bounded(folder: impl AsFd, name: &str, longest: u64) -> io::Result<Vec<u8>> {
    check_name(name)?;
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = File::from(rustix::fs::openat(folder, name, flags, Mode::empty())?);
    let bytes = beginning(file, longest.saturating_add(1))?;
    match u64::try_from(bytes.len()) {
        Ok(length) if length <= longest => Ok(bytes),
        _ => Err(refused(&format!("longer than {longest} bytes"))),
    }
}

/// Reads the first `most` bytes of the plain file at `path`, or all of them if it has fewer. Links are followed.
/// Nothing waits, whatever somebody puts there: pipes and devices are refused, and so are files in `/proc`, which look
/// plain, although the kernel's log among them has no end.
///
/// # Errors
/// Those of the operating system; `InvalidData` if it is not a plain file.
pub fn read_beginning(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    // Before it is opened: opening a device can be enough to start it, as with a watchdog.
    if !std::fs::metadata(path)?.is_file() {
        return Err(not_plain());
    }
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file = File::from(rustix::fs::open(path, flags, Mode::empty())?);
    beginning(file, most)
}

/// Reads the first `most` bytes of a file that was opened without waiting.
fn beginning(file: File, most: u64) -> io::Result<Vec<u8>> {
    // On the descriptor: another file may have the name by now.
    if !file.metadata()?.is_file() {
        return Err(not_plain());
    }
    // Reading some of these removes what is read.
    if rustix::fs::fstatfs(&file)?.f_type == PROC_SUPER_MAGIC {
        return Err(refused(
            "a file of the kernel: put a plain file in its place",
        ));
    }
    let mut bytes = Vec::new();
    file.take(most).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn not_plain() -> io::Error {
    refused("not a plain file: put one in its place")
}

fn refused(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("it is {what}"))
}

/// Lists the names in a folder with their types, as the folder itself records them. Names that are not UTF-8 are left
/// out.
///
/// # Errors
/// Those of the operating system.
pub fn read_dir_names(folder: impl AsFd) -> io::Result<Vec<(String, FileType)>> {
    let folder = folder.as_fd();
    let mut names = Vec::new();
    for entry in Dir::read_from(folder)? {
        let entry = entry?;
        let Ok(name) = entry.file_name().to_str() else {
            continue;
        };
        if name == "." || name == ".." {
            continue;
        }
        let kind = match entry.file_type() {
            // Some file systems do not record the type.
            FileType::Unknown => {
                match rustix::fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW) {
                    Ok(about) => FileType::from_raw_mode(about.st_mode),
                    Err(rustix::io::Errno::NOENT) => continue,
                    Err(error) => return Err(error.into()),
                }
            }
            kind => kind,
        };
        names.push((name.to_owned(), kind));
    }
    Ok(names)
}
