//! What both ends agree to be bounded by.

use std::time::Duration;

/// The longest message of the WebSocket, in bytes. A frame of HTTP/2 is a fraction of it.
pub(crate) const MESSAGE: usize = 256 << 10;
/// The longest head of a request or an answer, in bytes, as HTTP/2 counts it.
pub(crate) const HEAD: u32 = 32 << 10;
/// How much of one body is on the way to a reader that does not read, in bytes.
pub(crate) const STREAM_WINDOW: u32 = 64 << 10;
/// As [`STREAM_WINDOW`], of all bodies of one tunnel together.
pub(crate) const CONNECTION_WINDOW: u32 = 512 << 10;
/// How much of a body waits within the program that sends it, in bytes.
pub(crate) const SEND_BUFFER: usize = 64 << 10;
/// Between two pings; shorter than the patience of the proxies between.
pub(crate) const PING_EVERY: Duration = Duration::from_secs(30);
/// How long a ping may stay unanswered before the peer counts as gone.
pub(crate) const PONG_WITHIN: Duration = Duration::from_secs(20);
