//! GPIO lines. Capability `gpio`: the policy gives the plugin lines under names of its own choice.
//!
//! ```no_run
//! # async fn handler() -> Result<(), supervisor_sdk::Error> {
//! use std::time::Duration;
//! use supervisor_sdk::gpio::{self, Edge};
//!
//! gpio::write("relay", true).await?;
//! let is_open = gpio::read("door").await?;
//! let opened = gpio::wait_edge("door", Edge::Rising, Duration::from_secs(5)).await?;
//! # Ok(())
//! # }
//! ```
//!
//! The device keeps a line from its first use until the policy no longer gives it to the plugin: an output stays as it was
//! written when the call has ended, and nobody else has the line.

use std::time::Duration;

use crate::bindings::capabilities::platform::supervisor::gpio as wit;
use crate::capability_error::capability_error;

/// Which edges are waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Edge {
    /// The line goes on.
    Rising,
    /// The line goes off.
    Falling,
    /// Either.
    Both,
}

/// A change of an input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EdgeEvent {
    /// Whether the line went on.
    pub is_rising: bool,
    /// When, in nanoseconds of a clock that only goes forward: only differences mean something.
    pub nanoseconds: u64,
    /// How many edges were lost before this one since the last that this call was given.
    pub lost: u32,
}

/// Whether the line is on. An output that was not written yet is read as it is.
///
/// # Errors
/// [`Error`].
pub async fn read(name: &str) -> Result<bool, Error> {
    Ok(wit::read(name.to_owned()).await?)
}

/// Switches an output on or off.
///
/// # Errors
/// [`Error`].
pub async fn write(name: &str, on: bool) -> Result<(), Error> {
    Ok(wit::write(name.to_owned(), on).await?)
}

/// Waits for an edge of an input; `None` once `within` has passed (60 s at most). Edges count from the first wait of a call
/// on: those that come between two waits of one call are given to the second, the last 64 of them. Waiting counts as wall
/// time of the call.
///
/// # Errors
/// [`Error`].
pub async fn wait_edge(
    name: &str,
    edge: Edge,
    within: Duration,
) -> Result<Option<EdgeEvent>, Error> {
    let milliseconds = u32::try_from(within.as_millis()).unwrap_or(u32::MAX);
    let event = wit::wait_edge(name.to_owned(), edge.into(), milliseconds).await?;
    Ok(event.map(EdgeEvent::from))
}

mirror! { one way enum Edge, wit::Edge { Rising, Falling, Both } }
mirror! { one way struct wit::EdgeEvent, EdgeEvent { is_rising, nanoseconds, lost } }

capability_error! {
    /// Why a line was not read or switched.
    ///
    /// As a [`crate::Error`]: 409 if somebody else holds the line, 502 if the device has none or it fails, else 500.
    wit::GpioError {
        /// The policy does not name this line.
        NotGranted from NotGranted answers internal,
        /// The device has no such chip or line.
        NotFound from NotFound answers bad_gateway,
        /// Another plugin or program holds it, or another call waits for its edges.
        Busy from Busy answers conflict,
        /// The line is not of that direction, or the chip cannot do it.
        Invalid from Invalid answers internal,
        /// It could not be read or written.
        Failed from Other answers bad_gateway,
    }
}
