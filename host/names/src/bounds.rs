//! What looking up names may cost.

use std::time::Duration;

/// Threads that ask the system's resolver at a time. They are there while there is something to ask.
pub(crate) const THREADS: usize = 4;
/// The stack of one, in bytes, of which only what is used is there: modules of the C library's name service put their
/// answers on it, 64 KiB each.
pub(crate) const STACK: usize = 512 << 10;
/// Names that wait for a thread; more are refused at once.
pub(crate) const WAITING: usize = 64;
/// How long a name may take, with the time for which it waits for a thread. The C library gives a name server 5 s, and
/// asks the next one then; the second of three silent ones ends here.
pub(crate) const WITHIN: Duration = Duration::from_secs(15);
