//! Which lines are kept and read, and why some are not kept.

/// Lines of a device that are kept at most.
pub const KEPT: usize = 1000;
/// For how long, in milliseconds.
pub const KEPT_FOR: i64 = 30 * 24 * 3600 * 1000;

/// Why lines are not kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AppendError {
    /// Their device is gone.
    Gone,
    /// They are not taken now.
    Unavailable,
}

/// The latest lines of a device.
#[derive(Debug, Clone, Copy)]
pub struct Span {
    pub device: i64,
    /// As many at most.
    pub count: usize,
    /// Since then, in milliseconds since the epoch.
    pub since: i64,
}
