//! What instances may take to begin. What one call may take is in its blueprint; what all plugins together may take, in
//! `host/plugins/src/bounds.rs`.

use std::time::Duration;

/// How long a plugin may take to start for one to be made ahead; the calls of a plugin that takes longer make their
/// own, within its limits.
pub(crate) const START_WITHIN: Duration = Duration::from_secs(1);

/// What a call waits for before it makes an instance, in bytes: about what a plugin in Rust begins with.
pub(crate) const FIRST_MEMORY: usize = 2 << 20;
