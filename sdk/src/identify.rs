//! The action behind `POST /v1/blink`: the device shows itself to a person.
//!
//! **To provide it**: the function that [`crate::plugin!`] names as `identify` runs in its own task after the request
//! was answered. It shows its pattern until [`remaining`] is zero, and then returns; if it does not, the host stops
//! it soon after. A second request extends the time and does not call the function again. This needs no capability
//! (an LED does, see [`crate::led`]).
//!
//! **To call it**: [`run`], with the capability `identify`. The device decides which plugin provides it, and on which
//! LEDs.

use std::time::Duration;

use crate::Error;
use crate::bindings::capabilities::platform::supervisor::identify;
use crate::bindings::identifier::platform::supervisor::identify_window;

/// Returns how much longer the device has to identify itself. Call this again at each step: the time may grow.
#[must_use]
pub fn remaining() -> Duration {
    Duration::from_millis(identify_window::remaining_ms().into())
}

/// Makes the device identify itself for 15 s from now, as `POST /v1/blink` does, and returns when the time is over.
/// Capability `identify`.
///
/// Dropping the future does not end the pattern. A handler that waits for it needs a higher limit, for example
/// `wall_ms: 20000`: the default is 10 s.
///
/// # Errors
/// 500 if the provider failed, with the provider's message, and if nothing was shown: no plugin provides `identify`,
/// or the one that does has no LED or the like to show the device with.
pub async fn run() -> Result<(), Error> {
    identify::identify().await.map_err(Error::internal)
}
