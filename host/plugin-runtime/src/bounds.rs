//! Limits for the start of an instance. The limits of one call are in its blueprint; those of all plugins together are
//! in `host/plugins/src/bounds.rs`.

use std::time::Duration;

/// How long a plugin may take to start for instances of it to be prepared ahead. Calls of a plugin that takes longer
/// create their own, within its limits.
pub(crate) const START_WITHIN: Duration = Duration::from_secs(1);

/// The least free memory that a call waits for before it creates an instance, in bytes: about what a plugin in Rust
/// starts with. If the last instance took more, the call waits for as much.
pub(crate) const FIRST_MEMORY: usize = 2 << 20;
