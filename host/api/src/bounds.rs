//! What a client may take and hold, in one place: each cost of a request to the device has a bound here.
//! Bodies of plugins have those of the plugin (`body_kib`); what they do, those of its instance.
//!
//! ```text
//! connection  by listener, by peer          LISTENER_CONNECTIONS, PEER_CONNECTIONS
//! head        its time, its length          HEAD_WITHIN, BUFFER
//! body        bytes, values, time           SMALL_…, LARGE_…, SEND_WITHIN, TURN_WITHIN
//! plugin      bytes, time of each piece, of all PLUGIN_BODY, PLUGIN_PIECE_WITHIN, PLUGIN_WITHIN
//! turn        of a client that sends many   LONG_TURN
//! answer      while nothing of it is read   UNREAD_FOR, STREAM_UNREAD_FOR
//! log         lines a second                REFUSED_LINES, OTHER_LINES
//! streams     readers                       MAX_READERS of `events.rs` and `v2/local_logs.rs`
//! ```

use std::time::Duration;

/// The longest body of a core endpoint, in bytes. They take a few fields each.
pub(crate) const SMALL_BODY: usize = 64 << 10;
/// The most values in such a body. A value takes far more memory than the two bytes it is written in.
pub(crate) const SMALL_VALUES: usize = 1_000;
/// The longest target state, in bytes (docs/spec/device.md#http-body).
pub(crate) const LARGE_BODY: usize = 10 << 20;
/// The most values in a target state, names of fields not counted.
pub(crate) const LARGE_VALUES: usize = 50_000;
/// How long a client may take to send a body.
pub(crate) const SEND_WITHIN: Duration = Duration::from_secs(60);
/// The longest plugin that a developer may send, in bytes: as long as a file in a plugin folder may be.
pub(crate) const PLUGIN_BODY: u64 = 64 << 20;
/// How long a client that sends one may be silent.
pub(crate) const PLUGIN_PIECE_WITHIN: Duration = if cfg!(test) {
    Duration::from_secs(1)
} else {
    Duration::from_secs(30)
};
/// How long it may take to send all of it.
pub(crate) const PLUGIN_WITHIN: Duration = if cfg!(test) {
    Duration::from_secs(3)
} else {
    Duration::from_secs(600)
};
/// How long a body longer than [`SMALL_BODY`] waits for its turn: one is in memory at a time.
pub(crate) const TURN_WITHIN: Duration = if cfg!(test) {
    Duration::from_secs(2)
} else {
    Duration::from_secs(60)
};

/// Connections of one listener at the same time. If there are as many, the oldest that has shown no key
/// makes room for the next, else the one that is idle for longest; if all are at work, the next is refused.
pub(crate) const LISTENER_CONNECTIONS: usize = if cfg!(test) { 8 } else { 256 };
/// Of these, connections of one peer: an address, or a network of 64 bits with IPv6. The host itself is
/// bounded by the listener alone, since all its programs have one address.
pub(crate) const PEER_CONNECTIONS: usize = if cfg!(test) { 4 } else { 64 };
/// The pause after a failure to take a connection, which is mostly a lack of file descriptors.
pub(crate) const AFTER_FAILURE: Duration = Duration::from_millis(100);

/// How long a client may take to send the head of a request. Also how long a connection may be idle.
pub(crate) const HEAD_WITHIN: Duration = if cfg!(test) {
    Duration::from_secs(2)
} else {
    Duration::from_secs(30)
};
/// The longest head, and how much of an answer is held for a client that reads slowly, in bytes.
pub(crate) const BUFFER: usize = 64 << 10;
/// The bytes of an answer that the kernel buffers for a slow client. Left to itself it
/// holds megabytes for each. A third of it has to be read before that counts as progress.
pub(crate) const KERNEL_BUFFER: usize = 256 << 10;
/// How long a client may leave an answer unread before its connection ends.
pub(crate) const UNREAD_FOR: Duration = if cfg!(test) {
    Duration::from_secs(1)
} else {
    Duration::from_secs(30)
};
/// The same for an answer of which nobody knows how long it will be: logs, events (docs/spec/device.md#http-limits).
pub(crate) const STREAM_UNREAD_FOR: Duration = Duration::from_secs(15 * 60);
/// How long an answer takes to make after which the connection lets others go first.
pub(crate) const LONG_TURN: Duration = Duration::from_millis(1);
/// What is left unread of a body is read and dropped for so long, and so much of it, in bytes.
pub(crate) const REST_FOR: Duration = Duration::from_secs(5);
pub(crate) const REST_UP_TO: usize = 64 << 20;

/// How long requests under way may still take when the API stops (docs/spec/device.md#stop).
pub const GRACE: Duration = Duration::from_secs(5);

/// Lines of the access log in a second: of requests that were refused as their callers', and of others.
/// Further lines are counted, and one line gives their number.
pub(crate) const REFUSED_LINES: u64 = 1;
pub(crate) const OTHER_LINES: u64 = 50;
