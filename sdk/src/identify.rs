//! The action behind `POST /v1/blink`: the device shows itself to a person.
//!
//! The function that [`crate::plugin!`] names at `identify` runs in a task of its own after the request
//! was answered. It shows its pattern until [`remaining`] is zero, then returns; the host ends it by
//! force soon after. A second request extends the time rather than calling it again. Needs no capability
//! (an LED does, see [`crate::led`]).

use std::time::Duration;

use crate::bindings::identifier::platform::supervisor::identify_window as wit;

/// How long the device is still to show itself. Ask again at each step: it may grow.
#[must_use]
pub fn remaining() -> Duration {
    Duration::from_millis(wit::remaining_ms().into())
}
