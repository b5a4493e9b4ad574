//! One lock file.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::sync::Arc;

use rustix::fs::{AtFlags, Mode, OFlags, Stat, StatxFlags};
use secure_fs::{SecureDir, random_hex};

use super::tree::{LockTree, ServiceFolder};

/// A lock in the folder of its service, and what a lock of ours holds.
#[derive(Debug)]
pub(super) struct LockFile {
    folder: Arc<ServiceFolder>,
    name: String,
    marker: String,
}

impl LockFile {
    pub(super) fn new(folder: &Arc<ServiceFolder>, name: &str, marker: &str) -> Self {
        LockFile {
            folder: Arc::clone(folder),
            name: name.to_owned(),
            marker: marker.to_owned(),
        }
    }

    /// For messages, and for waiting.
    pub(super) fn path(&self) -> PathBuf {
        self.folder.path().join(&self.name)
    }

    /// Takes the lock; `false` where somebody else has it. One that an earlier run of ours left
    /// counts as taken.
    pub(super) fn take(&self, tree: &LockTree) -> io::Result<bool> {
        match self.link(&tree.drafts()?) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(self.is_ours()),
            other => other.map(|()| true),
        }
    }

    /// Writes the lock under another name, then gives it its own: link(2), unlike rename(2), refuses
    /// when anything is there, and unlike creating the file in place it never leaves an empty one.
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

    /// What stands at the lock's place, not followed where it is a link.
    ///
    /// # Errors
    /// `NotFound` where nothing does, else what the operating system says.
    pub(super) fn look(&self) -> io::Result<Stat> {
        let not_followed = AtFlags::SYMLINK_NOFOLLOW;
        Ok(rustix::fs::statat(&*self.folder, &self.name, not_followed)?)
    }

    /// When the file was made, or last written where the file system or the kernel keeps no more than that;
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

    /// Whether the lock is there and holds this device's marker.
    pub(super) fn is_ours(&self) -> bool {
        let marker = self.marker.as_bytes();
        let longest = u64::try_from(marker.len()).unwrap_or(u64::MAX);
        // Not followed, and not waited for where it is a pipe.
        let content = secure_fs::read_bounded(&*self.folder, &self.name, longest);
        content.is_ok_and(|content| content == marker)
    }

    /// Removes the lock where it is ours: a user may have removed ours by force and put their own.
    pub(super) fn release(&self) {
        if self.is_ours() {
            let _ = rustix::fs::unlinkat(&*self.folder, &self.name, AtFlags::empty());
        }
    }

    /// Removes whatever is there; a folder only when it is empty.
    pub(super) fn clear(&self) {
        if rustix::fs::unlinkat(&*self.folder, &self.name, AtFlags::empty()).is_err() {
            let _ = rustix::fs::unlinkat(&*self.folder, &self.name, AtFlags::REMOVEDIR);
        }
    }
}

fn write_new(folder: impl AsFd, name: &str, content: &str) -> io::Result<()> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    // Readable by the service, so that a person in it can see whose it is.
    let file = rustix::fs::openat(folder, name, flags, Mode::from_raw_mode(0o444))?;
    File::from(file).write_all(content.as_bytes())
}
