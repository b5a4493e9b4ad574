//! Limits on how long a client may take and how much it may hold, in one place. Those that an operator may have to
//! change are in the configuration (`[limits]`); the rest are constants.
//!
//! ```text
//! head    from its first byte to its last                      `head_seconds`
//! idle    between two requests                                 `idle_seconds`
//! body    while nothing, or almost nothing, of it arrives      `body_seconds`
//! answer  while the client reads nothing, or almost nothing    `unread_seconds`
//! ```

use std::time::Duration;

use cloud_core::configuration::Limits;
use rustix::process::{Resource, getrlimit};

/// Files reserved for other purposes, out of those that the system lets the program open: the database, the bus, the
/// log.
const OTHER_FILES: u64 = 128;
/// Connections if the system lets the program open more files than anybody needs.
const MOST_CONNECTIONS: u64 = 100_000;
/// Connections of one address, if not configured.
const OF_AN_ADDRESS: usize = 1000;

/// The longest head of a request, and how much of an answer is buffered for a client that reads slowly, in bytes.
pub(crate) const BUFFER: usize = 256 << 10;
/// A body counts as arriving if this many bytes of it arrive within its time.
pub(crate) const BODY_PROGRESS: u64 = 16 << 10;
/// After an answer, the unread rest of the request's body is read and discarded, up to this many bytes and for this
/// long. If that is not enough, the connection ends.
pub(crate) const LEFT_BODY: u64 = 16 << 20;
pub(crate) const LEFT_BODY_TIME: Duration = Duration::from_secs(10);
/// An answer counts as being read if its client accepts this many bytes within its time.
pub(crate) const ANSWER_PROGRESS: u64 = 32 << 10;
/// How much of an answer the system buffers for a client that reads slowly, in bytes. By default, it buffers megabytes
/// for each client, and reports no progress until a third of them is read.
pub(crate) const SYSTEM_BUFFER: usize = 256 << 10;
/// How long a device that sends its logs in one long request may send nothing.
pub(crate) const LOG_SILENCE: Duration = Duration::from_secs(300);
/// How long a peer may leave data unacknowledged before the system ends the connection: for peers that disappear
/// without notice.
pub(crate) const UNACKNOWLEDGED: Duration = Duration::from_secs(90);
/// Simultaneous requests of deleted devices, which are answered late: of one address, and of all.
pub(crate) const LATE_ANSWERS: (usize, usize) = (32, 1024);
/// Log streams that one device may have open: a device whose connection broke opens another before the cloud detects
/// that the first is dead. The oldest ends.
pub(crate) const LOG_STREAMS: usize = 2;
/// An answer of more bytes than this counts towards its caller's limit.
pub(crate) const LONG_ANSWER: usize = 256 << 10;
/// Bytes of long answers that are in memory and not read yet: of one caller, and of all.
pub(crate) const UNREAD_BYTES: (usize, usize) = (64 << 20, 256 << 20);

/// Limits of connections.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bounds {
    /// Simultaneous connections.
    pub(crate) connections: usize,
    /// Simultaneous connections of one address (IPv6: of one network of 64 bits).
    pub(crate) of_an_address: usize,
    pub(crate) head: Duration,
    pub(crate) idle: Duration,
    pub(crate) body: Duration,
    pub(crate) unread: Duration,
}

impl Bounds {
    /// Returns the configured limits, and as many connections as the system allows if nothing is configured.
    pub(crate) fn from_limits(limits: &Limits) -> Self {
        Self::with_files(limits, getrlimit(Resource::Nofile).current)
    }

    fn with_files(limits: &Limits, files: Option<u64>) -> Self {
        let files = files.unwrap_or(MOST_CONNECTIONS);
        let fit = files
            .saturating_sub(OTHER_FILES)
            .max(files / 2)
            .min(MOST_CONNECTIONS);
        let fit = usize::try_from(fit).unwrap_or(usize::MAX).max(1);
        let connections = limits.connections.map_or(fit, |most| most.get() as usize);
        // One address can never occupy all connections.
        let share = OF_AN_ADDRESS.min(connections.div_ceil(2));
        let seconds = |number: u16| Duration::from_secs(number.into());
        Bounds {
            connections,
            of_an_address: limits
                .connections_per_address
                .map_or(share, |most| most.get() as usize),
            head: seconds(limits.head_seconds.get()),
            idle: seconds(limits.idle_seconds.get()),
            body: seconds(limits.body_seconds.get()),
            unread: seconds(limits.unread_seconds.get()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU32;

    use super::*;

    #[test]
    fn as_many_connections_as_files_can_be_opened_and_one_address_has_half_at_most() {
        let limits = Limits::default();
        let with = |files| {
            let bounds = Bounds::with_files(&limits, files);
            (bounds.connections, bounds.of_an_address)
        };
        assert_eq!(with(Some(1024)), (896, 448));
        assert_eq!(with(Some(100)), (50, 25));
        assert_eq!(with(Some(1 << 20)), (100_000, 1000));
        assert_eq!(with(None), (99_872, 1000));
        let limits = Limits {
            connections: NonZeroU32::new(9),
            ..limits
        };
        let bounds = Bounds::with_files(&limits, None);
        assert_eq!((bounds.connections, bounds.of_an_address), (9, 5));
    }
}
