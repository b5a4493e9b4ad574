//! Limits for one call of a plugin.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Limits for one call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// Linear memory, in bytes.
    pub memory: usize,
    /// CPU time. Time spent waiting does not count.
    pub cpu: Duration,
    /// Wall-clock time until the answer begins.
    pub wall: Duration,
    /// The size of a request's body, and of an answer's unless it is a stream; in bytes.
    pub body: usize,
    /// Concurrent calls.
    pub concurrency: usize,
}
