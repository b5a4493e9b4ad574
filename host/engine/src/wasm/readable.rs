//! Waiting for a descriptor to become readable.

use std::io;
use std::os::fd::OwnedFd;

use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// Wraps a descriptor for waiting: a queue of changes, or the end of a process.
pub(super) fn readable(descriptor: OwnedFd) -> io::Result<AsyncFd<OwnedFd>> {
    #[expect(
        unsafe_code,
        reason = "tokio cannot tell that any type's descriptor stays its own"
    )]
    // SAFETY: an `OwnedFd` is one descriptor, which stays open and the same until it is dropped,
    // and the `AsyncFd` owns it, does not allow replacing it, and ends its registration before it
    // drops it.
    let registered = unsafe { AsyncFd::register_with_interest(descriptor, Interest::READABLE) };
    registered.map_err(io::Error::from)
}
