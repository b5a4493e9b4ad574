//! The bounds that calls of plugins meet.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// How long a request waits for a place, for its turn with a plugin, or for memory, before it is refused: a crowd of
/// clients on a slow device waits, and none is sent away.
pub const PATIENCE: Duration = Duration::from_secs(5);

/// How many instances of plugins a runtime holds. A place costs address space (32 MiB) but no memory until it is used.
pub const DEFAULT_SLOTS: usize = 32;

/// A bound that a call has met: what there is of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Bound {
    /// Calls of the plugin at a time.
    Calls(usize),
    /// Instances of all plugins.
    Places(usize),
    /// Memory of the plugin's instances, in bytes.
    MemoryOfOne(usize),
    /// Memory of all plugins' instances, in bytes.
    MemoryOfAll(usize),
}

impl fmt::Display for Bound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Bound::Calls(count) => write!(f, "it takes {count} calls at a time"),
            Bound::Places(count) => write!(f, "all {count} places of plugins are taken"),
            Bound::MemoryOfOne(bytes) => {
                write!(
                    f,
                    "its calls may use {} MiB of memory in total",
                    bytes >> 20
                )
            }
            Bound::MemoryOfAll(bytes) => {
                write!(
                    f,
                    "all plugins may use {} MiB of memory in total",
                    bytes >> 20
                )
            }
        }
    }
}
