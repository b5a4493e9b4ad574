//! Limits that both ends share.

use std::time::Duration;

/// The maximum length of a WebSocket message, in bytes. An HTTP/2 frame is a fraction of it.
pub(crate) const MESSAGE: usize = 256 << 10;
/// The maximum length of the head of a request or an answer, in bytes, as HTTP/2 counts it.
pub(crate) const HEAD: u32 = 32 << 10;
/// The number of bytes of one body that may be in transit to a reader that does not read.
pub(crate) const STREAM_WINDOW: u32 = 64 << 10;
/// Like [`STREAM_WINDOW`], for all bodies of one tunnel together.
pub(crate) const CONNECTION_WINDOW: u32 = 512 << 10;
/// The number of bytes of a body that may wait in the program that sends it.
pub(crate) const SEND_BUFFER: usize = 64 << 10;
/// The time between two pings; shorter than the idle timeout of proxies on the way.
pub(crate) const PING_EVERY: Duration = Duration::from_secs(30);
/// How long a ping may stay unanswered before the peer counts as gone.
pub(crate) const PONG_WITHIN: Duration = Duration::from_secs(20);
