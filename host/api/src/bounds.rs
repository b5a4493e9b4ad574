//! The limits on what a client may use and hold, in one place: each cost of a request to the device has a limit here.
//! Bodies for plugins are limited by the plugin's own setting (`body_kib`), and the work of plugins by the limits of
//! their instance.
//!
//! ```text
//! connection  per listener, per peer         LISTENER_CONNECTIONS, PEER_CONNECTIONS
//! head        its time, its length          HEAD_WITHIN, BUFFER
//! body        bytes, values, time           SMALL_…, LARGE_…, SEND_WITHIN, TURN_WITHIN
//! plugin      bytes, time of each piece, of all PLUGIN_BODY, PLUGIN_PIECE_WITHIN, PLUGIN_WITHIN
//! turn        for clients with many requests  LONG_TURN
//! answer      while the client does not read  UNREAD_FOR, STREAM_UNREAD_FOR
//! log         lines per second               REFUSED_LINES, OTHER_LINES
//! streams     readers                       MAX_READERS of `events.rs` and `v2/local_logs.rs`
//! ```

use std::time::Duration;

/// The longest body of a core endpoint, in bytes. Such bodies have only a few fields.
pub(crate) const SMALL_BODY: usize = 64 << 10;
/// The maximum number of values in such a body. A value takes far more memory than the two bytes in which it can be
/// written.
pub(crate) const SMALL_VALUES: usize = 1_000;
/// The longest target state, in bytes (docs/spec/device.md#http-body).
pub(crate) const LARGE_BODY: usize = 10 << 20;
/// The maximum number of values in a target state, not counting names of fields.
pub(crate) const LARGE_VALUES: usize = 50_000;
/// How long a client may take to send a body.
pub(crate) const SEND_WITHIN: Duration = Duration::from_secs(60);
/// The longest plugin that a developer may send, in bytes: the same as the limit for a file in a plugin folder.
pub(crate) const PLUGIN_BODY: u64 = 64 << 20;
/// How long a client may pause while it sends a plugin.
pub(crate) const PLUGIN_PIECE_WITHIN: Duration = if cfg!(test) {
    Duration::from_secs(1)
} else {
    Duration::from_secs(30)
};
/// How long it may take to send the whole plugin.
pub(crate) const PLUGIN_WITHIN: Duration = if cfg!(test) {
    Duration::from_secs(3)
} else {
    Duration::from_secs(600)
};
/// How long a body longer than [`SMALL_BODY`] waits for its turn: only one is in memory at a time.
pub(crate) const TURN_WITHIN: Duration = if cfg!(test) {
    Duration::from_secs(2)
} else {
    Duration::from_secs(60)
};

/// The maximum number of connections per listener. When it is reached, the oldest connection that has shown no key
/// makes room for a new one, or else the one that has been idle longest; if all are busy, the new one is refused.
pub(crate) const LISTENER_CONNECTIONS: usize = if cfg!(test) { 8 } else { 256 };
/// The maximum number of these per peer: an address, or a network of 64 bits with IPv6. The host's own programs are
/// limited only by the listener, since they have one address; services of the wasm engine have one each.
pub(crate) const PEER_CONNECTIONS: usize = if cfg!(test) { 4 } else { 64 };
/// The pause after a failure to accept a connection, usually due to a lack of file descriptors.
pub(crate) const AFTER_FAILURE: Duration = Duration::from_millis(100);

/// How long a client may take to send the head of a request. Also how long a connection may be idle.
pub(crate) const HEAD_WITHIN: Duration = if cfg!(test) {
    Duration::from_secs(2)
} else {
    Duration::from_secs(30)
};
/// The longest head, and how much of an answer is buffered for a client that reads slowly, in bytes.
pub(crate) const BUFFER: usize = 64 << 10;
/// The bytes of an answer that the kernel buffers for a slow client. Without this limit it holds megabytes for each.
/// The client must read a third of it before that counts as progress.
pub(crate) const KERNEL_BUFFER: usize = 256 << 10;
/// How long a client may leave an answer unread before its connection ends.
pub(crate) const UNREAD_FOR: Duration = if cfg!(test) {
    Duration::from_secs(1)
} else {
    Duration::from_secs(30)
};
/// The same for an answer of unknown length: logs, events (docs/spec/device.md#http-limits).
pub(crate) const STREAM_UNREAD_FOR: Duration = Duration::from_secs(15 * 60);
/// How long the computation of an answer may take before the connection lets others go first.
pub(crate) const LONG_TURN: Duration = Duration::from_millis(1);
/// The unread rest of a body is read and dropped for this long, and up to this many bytes.
pub(crate) const REST_FOR: Duration = Duration::from_secs(5);
pub(crate) const REST_UP_TO: usize = 64 << 20;

/// How long requests in progress may still take when the API stops (docs/spec/device.md#stop).
pub const GRACE: Duration = Duration::from_secs(5);

/// The maximum number of lines in the access log per second: of requests refused because of their callers, and of
/// others. Further lines are counted, and one line gives their number.
pub(crate) const REFUSED_LINES: u64 = 1;
pub(crate) const OTHER_LINES: u64 = 50;
