//! One lock file.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, Mode, OFlags};

/// The path of a lock, and what a lock of ours holds.
#[derive(Debug)]
pub(super) struct LockPath {
    path: PathBuf,
    marker: String,
}

impl LockPath {
    pub(super) fn new(path: PathBuf, marker: String) -> Self {
        LockPath { path, marker }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Takes the lock; `false` where somebody else has it. One that an earlier run of ours left
    /// counts as taken.
    pub(super) fn take(&self, drafts: &Path) -> io::Result<bool> {
        match self.link(drafts) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(self.is_ours()),
            other => other.map(|()| true),
        }
    }

    /// Writes the lock under another name, then gives it its own: link(2), unlike rename(2), refuses
    /// when anything is there, and unlike creating the file in place it never leaves an empty one.
    fn link(&self, drafts: &Path) -> io::Result<()> {
        fs::create_dir_all(drafts)?;
        let draft = drafts.join(random_name()?);
        let linked =
            write_new(&draft, &self.marker).and_then(|()| fs::hard_link(&draft, &self.path));
        let _ = fs::remove_file(&draft);
        linked
    }

    /// Whether the lock is there and holds this device's marker.
    pub(super) fn is_ours(&self) -> bool {
        let wanted = self.marker.as_bytes();
        // Not followed, and not waited for where it is a pipe.
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let Ok(file) = rustix::fs::openat(CWD, &self.path, flags, Mode::empty()) else {
            return false;
        };
        let file = File::from(file);
        if !file.metadata().is_ok_and(|about| about.is_file()) {
            return false;
        }
        let mut content = Vec::with_capacity(wanted.len() + 1);
        let limit = u64::try_from(wanted.len()).unwrap_or(u64::MAX);
        match file.take(limit.saturating_add(1)).read_to_end(&mut content) {
            Ok(_) => content == wanted,
            Err(_) => false,
        }
    }

    /// Removes the lock where it is ours: a user may have removed ours by force and put their own.
    pub(super) fn release(&self) {
        if self.is_ours() {
            let _ = fs::remove_file(&self.path);
        }
    }

    /// Removes whatever is there; a folder only when it is empty.
    pub(super) fn clear(&self) {
        if fs::remove_file(&self.path).is_err() {
            let _ = fs::remove_dir(&self.path);
        }
    }
}

fn write_new(path: &Path, content: &str) -> io::Result<()> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    // Readable by the service, so that a person in it can see whose it is.
    let file = rustix::fs::openat(CWD, path, flags, Mode::from_raw_mode(0o444))?;
    File::from(file).write_all(content.as_bytes())
}

/// 32 hexadecimal digits that nobody can guess.
pub(super) fn random_name() -> io::Result<String> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).map_err(|_| io::Error::other("no random numbers to be had"))?;
    Ok(hex::encode(bytes))
}
