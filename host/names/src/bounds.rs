//! Limits on the cost of name lookups.

use std::time::Duration;

/// Threads that query the system's resolver at the same time. They exist only while there are queries.
pub(crate) const THREADS: usize = 4;
/// The stack of one thread, in bytes, of which only the used part takes memory: modules of the C library's name
/// service put their answers on it, 64 KiB each.
pub(crate) const STACK: usize = 512 << 10;
/// Names that wait for a thread; further ones are refused at once.
pub(crate) const WAITING: usize = 64;
/// How long a lookup may take, including the time for which it waits for a thread. The C library waits 5 s for a name
/// server and then queries the next one; three silent ones use up the whole time.
pub(crate) const WITHIN: Duration = Duration::from_secs(15);
