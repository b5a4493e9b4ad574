//! Which lines are stored and read, and why lines are not stored.

/// Maximum number of stored lines of a device.
pub const KEPT: usize = 1000;
/// How long lines are stored, in milliseconds.
pub const KEPT_FOR: i64 = 30 * 24 * 3600 * 1000;

/// Why lines are not stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AppendError {
    /// Their device was deleted.
    Gone,
    /// Lines are not accepted now.
    Unavailable,
}

/// The latest lines of a device.
#[derive(Debug, Clone, Copy)]
pub struct Span {
    pub device: i64,
    /// Their maximum number.
    pub count: usize,
    /// The earliest time, in milliseconds since the epoch.
    pub since: i64,
}
