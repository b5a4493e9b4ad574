//! Changes of files, as reported by the system.

use std::ffi::OsString;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use rustix::fs::inotify::{self, CreateFlags, ReadFlags, Reader, WatchFlags};
use tokio::io::unix::AsyncFd;

use super::readable::readable;

/// A queue of changes.
pub(super) struct Inotify(AsyncFd<OwnedFd>);

/// One change.
pub(super) struct Change {
    /// The watch that reported it; -1 if changes were lost.
    pub(super) watch: i32,
    /// The entry that changed, in the watched folder.
    pub(super) name: Option<OsString>,
}

impl Inotify {
    pub(super) fn new() -> io::Result<Self> {
        let queue = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK)?;
        Ok(Inotify(readable(queue)?))
    }

    pub(super) fn watch(&self, path: &Path, changes: WatchFlags) -> io::Result<i32> {
        Ok(inotify::add_watch(self.0.get_ref(), path, changes)?)
    }

    /// Waits for changes, and returns all that have arrived.
    pub(super) async fn changes(&self) -> io::Result<Vec<Change>> {
        loop {
            let mut ready = self.0.readable().await?;
            match ready.try_io(|queue| read(queue.get_ref())) {
                Ok(changes) => return changes,
                Err(_would_block) => {}
            }
        }
    }
}

fn read(queue: &OwnedFd) -> io::Result<Vec<Change>> {
    let mut buffer = [MaybeUninit::uninit(); 4096];
    let mut reader = Reader::new(queue, &mut buffer);
    let mut changes = Vec::new();
    loop {
        match reader.next() {
            Ok(event) if event.events().contains(ReadFlags::QUEUE_OVERFLOW) => {
                changes.push(Change {
                    watch: -1,
                    name: None,
                })
            }
            Ok(event) => changes.push(Change {
                watch: event.wd(),
                name: event
                    .file_name()
                    .map(|name| std::ffi::OsStr::from_bytes(name.to_bytes()).to_owned()),
            }),
            Err(rustix::io::Errno::WOULDBLOCK) if !changes.is_empty() => return Ok(changes),
            Err(error) => return Err(error.into()),
        }
    }
}
