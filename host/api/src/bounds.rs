//! What a client may take and hold, in one place: each cost of a request to the device has a bound here.
//! Bodies of plugins have those of the plugin (`body_kib`); what they do, those of its instance.
//!
//! ```text
//! body  bytes, values, time  SMALL_…, LARGE_…, SEND_WITHIN, TURN_WITHIN
//! ```

use std::time::Duration;

/// The longest body of a core endpoint, in bytes. They take a few fields each.
pub(crate) const SMALL_BODY: usize = 64 << 10;
/// The most values in such a body. A value takes far more memory than the two bytes it is written in.
pub(crate) const SMALL_VALUES: usize = 1_000;
/// The longest target state, in bytes (device behaviour 1.0, "Body limit").
pub(crate) const LARGE_BODY: usize = 10 << 20;
/// The most values in a target state, names of fields not counted.
pub(crate) const LARGE_VALUES: usize = 50_000;
/// How long a client may take to send a body.
pub(crate) const SEND_WITHIN: Duration = Duration::from_secs(60);
/// How long a body longer than [`SMALL_BODY`] waits for its turn: one is in memory at a time.
pub(crate) const TURN_WITHIN: Duration = if cfg!(test) {
    Duration::from_secs(2)
} else {
    Duration::from_secs(60)
};
