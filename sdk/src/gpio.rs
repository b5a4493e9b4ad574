//! GPIO lines. Capability `gpio`: the policy grants lines to the plugin, under names that the policy chooses.
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
//! The device keeps a line from its first use until the policy no longer grants it to the plugin: an output keeps its
//! value after the call has ended, and nobody else can use the line.

use std::time::Duration;

use crate::bindings::capabilities::platform::supervisor::gpio as wit;
use crate::capability_error::capability_error;

/// The edges to wait for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Edge {
    /// The line is switched on.
    Rising,
    /// The line is switched off.
    Falling,
    /// Either of them.
    Both,
}

/// A change of an input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EdgeEvent {
    /// Whether the line was switched on.
    pub is_rising: bool,
    /// The time in nanoseconds, by a clock that only goes forward: only differences are meaningful.
    pub nanoseconds: u64,
    /// The number of edges that were lost between the last one that this call received and this one.
    pub lost: u32,
}

/// Returns whether the line is on. For an output that has not been written yet, this is its present state.
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

/// Waits for an edge of an input; `None` once `within` has passed (60 s at most). Edges count from the first wait of a
/// call: the second wait returns those that occur between the two, up to the last 64. Waiting counts as wall time of
/// the call.
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
    /// The reason why a line was not read or switched.
    ///
    /// As a [`crate::Error`]: 409 if somebody else holds the line, 502 if the device has no such line or it fails, else
    /// 500.
    wit::GpioError {
        /// The policy does not grant this line.
        NotGranted from NotGranted answers internal,
        /// The device has no such chip or line.
        NotFound from NotFound answers bad_gateway,
        /// Another plugin or program holds the line, or another call is waiting for its edges.
        Busy from Busy answers conflict,
        /// The line has the other direction, or the chip cannot do it.
        Invalid from Invalid answers internal,
        /// The line could not be read or written.
        Failed from Other answers bad_gateway,
    }
}
