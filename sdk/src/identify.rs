//! The action behind `POST /v1/blink`: the device shows itself to a person.
//!
//! **To provide it**: the function that [`crate::plugin!`] names at `identify` runs in a task of its own
//! after the request was answered. It shows its pattern until [`remaining`] is zero, then returns; the host
//! ends it by force soon after. A second request extends the time rather than calling it again. Needs no
//! capability (an LED does, see [`crate::led`]).
//!
//! **To have it done**: [`run`], with the capability `identify`. Which plugin provides it, and on which
//! LEDs, is the device's matter.

use std::time::Duration;

use crate::Error;
use crate::bindings::capabilities::platform::supervisor::identify;
use crate::bindings::identifier::platform::supervisor::identify_window;

/// How much longer the device has to identify itself. Call this again at each step: the time may grow.
#[must_use]
pub fn remaining() -> Duration {
    Duration::from_millis(identify_window::remaining_ms().into())
}

/// Makes the device identify itself for 15 s from now, as `POST /v1/blink` does, and returns when that is over.
/// Capability `identify`.
///
/// Dropping the future does not end the pattern. A handler that waits for it needs the limit
/// `wall_ms: 20000`, say: the default is 10 s.
///
/// # Errors
/// 500 if the provider failed, with what it said, and if nothing showed the device: no plugin provides `identify`, or
/// the one that does has nothing to show the device with, such as an LED.
pub async fn run() -> Result<(), Error> {
    identify::identify().await.map_err(Error::internal)
}
