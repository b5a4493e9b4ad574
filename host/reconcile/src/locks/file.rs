//! One lock file.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::sync::Arc;

use model::LockKind;
use rustix::fs::{AtFlags, FileType, Mode, OFlags, Stat, StatxFlags};
use secure_fs::{SecureDir, random_hex};

use super::tree::{LockTree, ServiceFolder};

/// A lock in the folder of its service, and the content of a lock of ours.
#[derive(Debug)]
pub(super) struct LockFile {
    folder: Arc<ServiceFolder>,
    name: String,
    marker: String,
}

/// The kind of file at the path of a lock.
#[derive(Debug)]
pub(super) enum LockFileKind {
    Nothing,
    /// A lock of this supervisor's own.
    Supervisor,
    /// The lock whose token was given.
    Leased,
    /// A user's: anything else.
    Other(LockKind),
}

impl LockFile {
    pub(super) fn new(folder: &Arc<ServiceFolder>, name: &str, marker: &str) -> Self {
        LockFile {
            folder: Arc::clone(folder),
            name: name.to_owned(),
            marker: marker.to_owned(),
        }
    }

    /// Returns its path, for messages and for waiting.
    pub(super) fn path(&self) -> PathBuf {
        self.folder.path().join(&self.name)
    }

    /// Takes the lock; returns `false` if somebody else has it. A lock left by an earlier run of ours counts as taken.
    pub(super) fn take(&self, tree: &LockTree) -> io::Result<bool> {
        match self.link(&tree.drafts()?) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(self.is_ours()),
            other => other.map(|()| true),
        }
    }

    /// Writes the lock under another name, then gives it its own with link(2): unlike rename(2) it fails if anything
    /// exists there, and unlike creating the file in place it never leaves an empty one.
    fn link(&self, drafts: &SecureDir) -> io::Result<()> {
        let draft = random_hex()?;
        let linked = write_new(drafts, &draft, &self.marker).and_then(|()| {
            let none = AtFlags::empty();
            rustix::fs::linkat(drafts, &draft, &*self.folder, &self.name, none)
                .map_err(io::Error::from)
        });
        let _ = drafts.remove(&draft);
        linked
    }

    /// Returns the status of what exists at the lock's path, without following a link.
    ///
    /// # Errors
    /// Returns `NotFound` if nothing exists there, else the error of the operating system.
    pub(super) fn look(&self) -> io::Result<Stat> {
        let not_followed = AtFlags::SYMLINK_NOFOLLOW;
        Ok(rustix::fs::statat(&*self.folder, &self.name, not_followed)?)
    }

    /// Examines the lock, without following it. `token` is the content of a lock that a service took over the API.
    pub(super) fn kind(&self, token: Option<&str>) -> io::Result<LockFileKind> {
        let about = match self.look() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Ok(LockFileKind::Nothing);
            }
            about => about?,
        };
        let holds = |token: &str| LockFile::new(&self.folder, &self.name, token).is_ours();
        Ok(match token {
            _ if self.is_ours() => LockFileKind::Supervisor,
            Some(token) if holds(token) => LockFileKind::Leased,
            _ => LockFileKind::Other(lock_kind(&about)),
        })
    }

    /// Returns when the file was created, or last written if the file system or the kernel records only that;
    /// milliseconds since 1970.
    pub(super) fn since(&self) -> Option<i64> {
        let not_followed = AtFlags::SYMLINK_NOFOLLOW;
        let birth = rustix::fs::statx(&*self.folder, &self.name, not_followed, StatxFlags::BTIME);
        let (seconds, nanoseconds) = match birth {
            Ok(about) if about.stx_mask & StatxFlags::BTIME.bits() != 0 => {
                (about.stx_btime.tv_sec, i64::from(about.stx_btime.tv_nsec))
            }
            _ => {
                let about = self.look().ok()?;
                (about.st_mtime, i64::try_from(about.st_mtime_nsec).ok()?)
            }
        };
        let since = seconds
            .checked_mul(1000)?
            .checked_add(nanoseconds / 1_000_000)?;
        (since >= 0).then_some(since)
    }

    /// Returns whether the lock exists and contains this device's marker.
    pub(super) fn is_ours(&self) -> bool {
        let marker = self.marker.as_bytes();
        let longest = u64::try_from(marker.len()).unwrap_or(u64::MAX);
        // Links are not followed, and a pipe is not waited for.
        let content = secure_fs::read_bounded(&*self.folder, &self.name, longest);
        content.is_ok_and(|content| content == marker)
    }

    /// Removes the lock if it is ours: a user may have removed ours by force and created their own.
    pub(super) fn release(&self) {
        if self.is_ours() {
            let _ = rustix::fs::unlinkat(&*self.folder, &self.name, AtFlags::empty());
        }
    }

    /// Removes whatever exists at the path; a folder only if it is empty.
    pub(super) fn clear(&self) {
        if rustix::fs::unlinkat(&*self.folder, &self.name, AtFlags::empty()).is_err() {
            let _ = rustix::fs::unlinkat(&*self.folder, &self.name, AtFlags::REMOVEDIR);
        }
    }
}

fn write_new(folder: impl AsFd, name: &str, content: &str) -> io::Result<()> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    // Readable by the service, so that a person in it can see whose lock it is.
    let file = rustix::fs::openat(folder, name, flags, Mode::from_raw_mode(0o444))?;
    File::from(file).write_all(content.as_bytes())
}

fn lock_kind(about: &Stat) -> LockKind {
    match FileType::from_raw_mode(about.st_mode) {
        FileType::RegularFile => LockKind::File,
        FileType::Directory => LockKind::Folder,
        FileType::Symlink => LockKind::Link,
        _ => LockKind::Other,
    }
}
