//! Waits until a user's lock is removed.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::inotify::{self, CreateFlags, WatchFlags};
use tokio::io::unix::AsyncFd;

/// Returns when something was removed from, or renamed in, the folder of the lock at `path`, or if the lock is gone
/// already.
///
/// # Errors
/// If the folder cannot be watched (inotify's limits); the caller then relies on timed retries.
pub(crate) async fn until_removed(path: &Path) -> io::Result<()> {
    let folder = path.parent().unwrap_or(path);
    let watch = inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC)?;
    let interesting = WatchFlags::DELETE
        | WatchFlags::MOVED_FROM
        | WatchFlags::DELETE_SELF
        | WatchFlags::MOVE_SELF
        | WatchFlags::ONLYDIR;
    inotify::add_watch(&watch, folder, interesting)?;
    let watch = readable(watch)?;
    let name = path
        .file_name()
        .map(|name| name.as_encoded_bytes().to_vec());
    loop {
        // Checked after the watch is set, so that a removal between the two is not missed.
        if std::fs::symlink_metadata(path).is_err() {
            return Ok(());
        }
        let mut ready = watch.readable().await?;
        let mut buffer = [MaybeUninit::uninit(); 4096];
        let mut events = inotify::Reader::new(watch.get_ref(), &mut buffer);
        loop {
            match events.next() {
                Ok(event) => {
                    let about = event.file_name().map(|name| name.to_bytes().to_vec());
                    if about.is_none() || about == name {
                        return Ok(());
                    }
                }
                Err(rustix::io::Errno::AGAIN) => break,
                Err(error) => return Err(error.into()),
            }
        }
        ready.clear_ready();
    }
}

#[expect(unsafe_code, reason = "registering a descriptor with the runtime")]
fn readable(watch: OwnedFd) -> io::Result<AsyncFd<OwnedFd>> {
    // SAFETY: an `OwnedFd` returns the same open descriptor for as long as it lives, and the `AsyncFd` owns it until it
    // has deregistered it.
    unsafe { AsyncFd::register(watch) }.map_err(io::Error::from)
}
