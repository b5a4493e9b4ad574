//! One folder, opened once.

use std::fs;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{AtFlags, CWD, Mode, OFlags, Stat};

use crate::DirError;
use crate::entry;

/// How a folder is opened: never by a link, and not waited for where it is a pipe.
const FOLDER: OFlags = OFlags::RDONLY
    .union(OFlags::DIRECTORY)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);
/// How often a folder that somebody puts back is moved away.
const MOVES: usize = 3;

/// Who may do what with a folder beside its owner.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Nobody anything: mode 0700. What is looser and ours is tightened.
    Private,
    /// Everybody may look: mode 0755. What others can write into is refused, but in a folder that is trusted, where
    /// it is tightened.
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

/// A folder of this process's own user into which nobody else can write. Cheap to clone; all clones have one
/// descriptor. Its methods touch the disk and are for blocking threads.
#[derive(Debug, Clone)]
pub struct SecureDir {
    pub(crate) fd: Arc<OwnedFd>,
    path: PathBuf,
}

impl SecureDir {
    /// Opens the folder at `path`, and makes it where it is missing, with the folders above it.
    ///
    /// The folders above are the caller's to trust: links in them are followed.
    ///
    /// # Errors
    /// [`DirError`]
    pub fn open(path: &Path, access: Access) -> Result<Self, DirError> {
        match path.parent() {
            Some(parent) => make_all(parent).map_err(open_error(path))?,
            None => return Err(open_error(path)(io::ErrorKind::InvalidInput.into())),
        }
        FolderLocation::of_path(path).make(access)
    }

    /// Opens the folder at `path`, if it is there.
    ///
    /// # Errors
    /// [`DirError`]
    pub fn existing(path: &Path, access: Access) -> Result<Option<Self>, DirError> {
        FolderLocation::of_path(path).existing(access)
    }

    /// As [`Self::open`], but a folder that cannot be trusted is moved away, with `.untrusted-` and a random number
    /// behind its name, and a new one takes its place. For folders in `/tmp`, where anybody may be there first.
    ///
    /// # Errors
    /// [`DirError`], also where it comes back each time that it is moved.
    pub fn open_or_replace(path: &Path, access: Access) -> Result<Self, DirError> {
        for _ in 0..MOVES {
            let distrusted = match Self::open(path, access) {
                Err(error) if error.is_distrust() => error,
                opened => return opened,
            };
            let aside = beside(path).map_err(open_error(path))?;
            fs::rename(path, &aside).map_err(open_error(path))?;
            tracing::error!(
                "{distrusted}. It was moved to `{}`, and a new one takes its place: containers that were started before see the old one until they are restarted",
                aside.display()
            );
        }
        Self::open(path, access)
    }

    /// The folder `name` in this one, made where it is missing.
    ///
    /// # Errors
    /// [`DirError`]
    pub fn dir(&self, name: &str, access: Access) -> Result<Self, DirError> {
        let path = self.path.join(name);
        entry::check_name(name).map_err(open_error(&path))?;
        self.inner(name, &path).make(access)
    }

    /// The folder `name` in this one, if it is there.
    ///
    /// # Errors
    /// [`DirError`]
    pub fn existing_dir(&self, name: &str, access: Access) -> Result<Option<Self>, DirError> {
        let path = self.path.join(name);
        entry::check_name(name).map_err(open_error(&path))?;
        self.inner(name, &path).existing(access)
    }

    /// The folder `name` in this one, whoever owns it by now and whoever writes into it: for one that was handed to
    /// somebody. It is no link. Made where it is missing if `make` says with which mode.
    ///
    /// # Errors
    /// What the operating system says, `NotFound` where it is missing and not to be made.
    pub fn shared_dir(&self, name: &str, make: Option<u32>) -> io::Result<OwnedFd> {
        entry::check_name(name)?;
        if let Some(mode) = make {
            match rustix::fs::mkdirat(&*self.fd, name, Mode::from_raw_mode(0o700)) {
                Ok(()) | Err(rustix::io::Errno::EXIST) => {}
                Err(error) => return Err(error.into()),
            }
            let dir = rustix::fs::openat(&*self.fd, name, FOLDER, Mode::empty())?;
            // On the descriptor: the name may mean something else by now.
            rustix::fs::fchmod(&dir, Mode::from_raw_mode(mode))?;
            return Ok(dir);
        }
        Ok(rustix::fs::openat(&*self.fd, name, FOLDER, Mode::empty())?)
    }

    /// Where it was opened; for messages, and for whoever can take a path alone.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether its path names it still: somebody with the right to may have removed it or put another there.
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

/// Where a folder is to be opened.
struct FolderLocation<'a> {
    at: BorrowedFd<'a>,
    name: &'a Path,
    path: &'a Path,
    /// Whether it stands in a folder that is trusted.
    is_inner: bool,
}

impl<'a> FolderLocation<'a> {
    fn of_path(path: &'a Path) -> Self {
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
            // Where nothing can be written, one that is there will do.
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
            // Where others could not get to it, nobody but we made it so, by an umask. What they could write into
            // holds what they put there. A private one was never beside others' in the first place.
            if access == Access::Readable && !self.is_inner {
                return Err(DirError::Mode {
                    path: self.path.to_owned(),
                    mode: about.st_mode & 0o7777,
                });
            }
            match rustix::fs::fchmod(&fd, access.mode()) {
                Ok(()) => {}
                // Nobody writes there then.
                Err(rustix::io::Errno::ROFS) => {}
                Err(error) => return Err(failed(error)),
            }
        }
        Ok(SecureDir {
            fd: Arc::new(fd),
            path: self.path.to_owned(),
        })
    }

    fn check_owner(&self, about: &Stat) -> Result<(), DirError> {
        let we = rustix::process::geteuid().as_raw();
        // Root can write everywhere as it is.
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

/// Makes a folder with those above it, for everybody to look into and nobody else to write, whatever the umask.
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
    name.push(entry::random_hex()?);
    Ok(path.with_file_name(name))
}

fn open_error(path: &Path) -> impl FnOnce(io::Error) -> DirError {
    let path = path.to_owned();
    move |source| DirError::Open { path, source }
}
