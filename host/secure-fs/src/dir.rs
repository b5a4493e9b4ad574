//! A folder that is opened once.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;
use rustix::fs::{AtFlags, CWD, Dir, Mode, OFlags, Stat};

use crate::DirError;
use crate::name::{check_name, random_hex};

/// How a folder is opened: links are not followed, and if it is a pipe, this does not block.
const FOLDER: OFlags = OFlags::RDONLY
    .union(OFlags::DIRECTORY)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);
/// How often a folder that somebody keeps restoring is moved away.
const MOVES: usize = 3;

/// What others than its owner may do with a folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Nothing: mode 0700. If our folder has a looser mode, the mode is tightened; if others could write to it, it is
    /// refused if it contains anything of theirs.
    Private,
    /// Everybody may read it: mode 0755. A folder that others can write to is refused; inside a trusted folder, its
    /// mode is tightened instead.
    Readable,
}

impl Access {
    fn mode(self) -> Mode {
        match self {
            Access::Private => Mode::from_raw_mode(0o700),
            Access::Readable => Mode::from_raw_mode(0o755),
        }
    }
}

/// A folder of this process's own user to which nobody else can write. Cheap to clone; all clones share one
/// descriptor. Its methods access the disk and are for blocking threads.
#[derive(Debug, Clone)]
pub struct SecureDir {
    pub(crate) fd: Arc<OwnedFd>,
    path: PathBuf,
}

impl SecureDir {
    /// Opens the folder at `path`; if it is missing, creates it together with the folders above it.
    ///
    /// The caller must trust the folders above: links in them are followed.
    ///
    /// # Errors
    /// [`DirError`]
    pub fn open(path: &Path, access: Access) -> Result<Self, DirError> {
        match path.parent() {
            Some(parent) => make_all(parent).map_err(open_error(path))?,
            None => return Err(open_error(path)(io::ErrorKind::InvalidInput.into())),
        }
        FolderLocation::from_path(path).make(access)
    }

    /// Opens the folder at `path`, if it exists.
    ///
    /// # Errors
    /// [`DirError`]
    pub fn existing(path: &Path, access: Access) -> Result<Option<Self>, DirError> {
        FolderLocation::from_path(path).existing(access)
    }

    /// Like [`Self::open`], but a folder that cannot be trusted is moved away, with `.untrusted-` and a random
    /// number appended to its name, and replaced by a new one. For folders in `/tmp`, where anybody may have
    /// created them first.
    ///
    /// # Errors
    /// [`DirError`], also if it comes back each time that it is moved.
    pub fn open_or_replace(path: &Path, access: Access) -> Result<Self, DirError> {
        static REPLACING: Mutex<()> = Mutex::new(());
        // One at a time: of two that distrust a folder, the second would move away the new folder of the first.
        let _replacing = REPLACING.lock();
        for _ in 0..MOVES {
            let distrusted = match Self::open(path, access) {
                Err(error) if error.is_distrust() => error,
                opened => return opened,
            };
            let aside = beside(path).map_err(open_error(path))?;
            fs::rename(path, &aside).map_err(open_error(path))?;
            tracing::error!(
                path = %path.display(),
                aside = %aside.display(),
                "{distrusted}. The supervisor moved it to `{}` and created a new one: containers that were started before use the old one until they are restarted",
                aside.display()
            );
        }
        Self::open(path, access)
    }

    /// Opens the folder `name` in this one, and creates it if it is missing.
    ///
    /// # Errors
    /// [`DirError`]
    pub fn dir(&self, name: &str, access: Access) -> Result<Self, DirError> {
        let path = self.path.join(name);
        check_name(name).map_err(open_error(&path))?;
        self.inner(name, &path).make(access)
    }

    /// Opens the folder `name` in this one, if it exists.
    ///
    /// # Errors
    /// [`DirError`]
    pub fn existing_dir(&self, name: &str, access: Access) -> Result<Option<Self>, DirError> {
        let path = self.path.join(name);
        check_name(name).map_err(open_error(&path))?;
        self.inner(name, &path).existing(access)
    }

    /// Opens the folder `name` in this one, whoever owns it now and whoever can write to it: for a folder that was
    /// handed over to somebody. Links are refused. If it is missing, it is created if `make` contains its mode.
    ///
    /// # Errors
    /// Those of the operating system, `NotFound` if it is missing and should not be created.
    pub fn shared_dir(&self, name: &str, make: Option<u32>) -> io::Result<OwnedFd> {
        check_name(name)?;
        if let Some(mode) = make {
            match rustix::fs::mkdirat(&*self.fd, name, Mode::from_raw_mode(0o700)) {
                Ok(()) | Err(rustix::io::Errno::EXIST) => {}
                Err(error) => return Err(error.into()),
            }
            let dir = rustix::fs::openat(&*self.fd, name, FOLDER, Mode::empty())?;
            // By its descriptor: the name may refer to something else by now.
            rustix::fs::fchmod(&dir, Mode::from_raw_mode(mode))?;
            return Ok(dir);
        }
        Ok(rustix::fs::openat(&*self.fd, name, FOLDER, Mode::empty())?)
    }

    /// Returns the path with which it was opened; for messages, and for callers that need a path.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns whether its path still refers to it: somebody with the right to do so may have removed or replaced
    /// it.
    #[must_use]
    pub fn is_in_place(&self) -> bool {
        let here = rustix::fs::fstat(&*self.fd);
        let there = rustix::fs::statat(CWD, &self.path, AtFlags::SYMLINK_NOFOLLOW);
        match (here, there) {
            (Ok(here), Ok(there)) => here.st_dev == there.st_dev && here.st_ino == there.st_ino,
            _ => false,
        }
    }

    fn inner<'a>(&'a self, name: &'a str, path: &'a Path) -> FolderLocation<'a> {
        FolderLocation {
            at: self.fd.as_fd(),
            name: Path::new(name),
            path,
            is_inner: true,
        }
    }
}

/// The place of a folder.
struct FolderLocation<'a> {
    at: BorrowedFd<'a>,
    name: &'a Path,
    path: &'a Path,
    /// Whether it is in a trusted folder.
    is_inner: bool,
}

impl<'a> FolderLocation<'a> {
    fn from_path(path: &'a Path) -> Self {
        FolderLocation {
            at: CWD,
            name: path,
            path,
            is_inner: false,
        }
    }

    fn make(&self, access: Access) -> Result<SecureDir, DirError> {
        match rustix::fs::mkdirat(self.at, self.name, access.mode()) {
            Ok(()) | Err(rustix::io::Errno::EXIST) => self.open(access),
            // If nothing can be written, an existing folder is sufficient.
            Err(error) => self.open(access).map_err(|opening| match opening {
                DirError::Open { .. } => open_error(self.path)(error.into()),
                distrusted => distrusted,
            }),
        }
    }

    fn existing(&self, access: Access) -> Result<Option<SecureDir>, DirError> {
        match self.open(access) {
            Err(DirError::Open { source, .. }) if source.kind() == io::ErrorKind::NotFound => {
                Ok(None)
            }
            opened => opened.map(Some),
        }
    }

    fn open(&self, access: Access) -> Result<SecureDir, DirError> {
        let failed = |error: rustix::io::Errno| open_error(self.path)(error.into());
        let fd = match rustix::fs::openat(self.at, self.name, FOLDER, Mode::empty()) {
            Err(rustix::io::Errno::LOOP | rustix::io::Errno::NOTDIR) => {
                return Err(DirError::NoFolder {
                    path: self.path.to_owned(),
                });
            }
            opened => opened.map_err(failed)?,
        };
        let about = rustix::fs::fstat(&fd).map_err(failed)?;
        self.check_owner(&about)?;
        let is_loose = match access {
            Access::Private => about.st_mode & 0o777 != 0o700,
            Access::Readable => about.st_mode & 0o022 != 0,
        };
        if is_loose {
            // If others could not reach it, only our own umask can have given it this mode. If they could write to
            // it, it contains what they put there. A private folder was never next to those of others in the first
            // place.
            if access == Access::Readable && !self.is_inner {
                return Err(DirError::Mode {
                    path: self.path.to_owned(),
                    mode: about.st_mode & 0o7777,
                });
            }
            let could_write = about.st_mode & 0o022 != 0 && !self.is_inner;
            if could_write {
                self.check_entries(&fd)?;
            }
            match rustix::fs::fchmod(&fd, access.mode()) {
                Ok(()) if could_write => tracing::warn!(
                    path = %self.path.display(),
                    "others could write to `{}`, which had the mode {:o}; it now has the mode {:o}, and everything in it belongs to root or to the supervisor's own user",
                    self.path.display(),
                    about.st_mode & 0o7777,
                    access.mode().as_raw_mode()
                ),
                Ok(()) => {}
                // On a read-only file system nobody writes to it.
                Err(rustix::io::Errno::ROFS) => {}
                Err(error) => return Err(failed(error)),
            }
        }
        Ok(SecureDir {
            fd: Arc::new(fd),
            path: self.path.to_owned(),
        })
    }

    /// Checks that a folder to which others could write contains nothing of theirs.
    fn check_entries(&self, fd: &OwnedFd) -> Result<(), DirError> {
        let failed = |error: rustix::io::Errno| open_error(self.path)(error.into());
        let we = rustix::process::geteuid().as_raw();
        for entry in Dir::read_from(fd).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            let name = entry.file_name();
            if [c".", c".."].contains(&name) {
                continue;
            }
            let about = match rustix::fs::statat(fd, name, AtFlags::SYMLINK_NOFOLLOW) {
                Err(rustix::io::Errno::NOENT) => continue,
                about => about.map_err(failed)?,
            };
            if ![0, we].contains(&about.st_uid) {
                return Err(DirError::Entry {
                    path: self.path.join(OsStr::from_bytes(name.to_bytes())),
                    owner: about.st_uid,
                });
            }
        }
        Ok(())
    }

    fn check_owner(&self, about: &Stat) -> Result<(), DirError> {
        let we = rustix::process::geteuid().as_raw();
        // Root can write everywhere anyway.
        match about.st_uid {
            0 => Ok(()),
            owner if owner == we => Ok(()),
            owner => Err(DirError::Owner {
                path: self.path.to_owned(),
                owner,
                we,
            }),
        }
    }
}

impl AsFd for SecureDir {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// Creates a folder with those above it, readable by everybody and not writable by others, whatever the umask.
fn make_all(folder: &Path) -> io::Result<()> {
    use std::os::unix::fs::DirBuilderExt as _;
    fs::DirBuilder::new()
        .recursive(true)
        .mode(0o755)
        .create(folder)
}

fn beside(path: &Path) -> io::Result<PathBuf> {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".untrusted-");
    name.push(random_hex()?);
    Ok(path.with_file_name(name))
}

fn open_error(path: &Path) -> impl FnOnce(io::Error) -> DirError {
    let path = path.to_owned();
    move |source| DirError::Open { path, source }
}
