//! What one call of a plugin may use.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// What one call may use.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// Linear memory, in bytes.
    pub memory: usize,
    /// CPU time. Time spent waiting does not count.
    pub cpu: Duration,
    /// Time by the clock, until the answer begins.
    pub wall: Duration,
    /// A request's body, and an answer's unless it is a stream; in bytes.
    pub body: usize,
    /// Calls at the same time.
    pub concurrency: usize,
}
