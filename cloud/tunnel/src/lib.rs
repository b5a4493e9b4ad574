//! The tunnel between a device and its cloud: HTTP/2 over one WebSocket. The device opens it, and the cloud sends the
//! requests.
//!
//! ```text
//! device ── GET /device/v3/<uuid>/tunnel, upgraded ──► cloud
//!        ◄── HTTP/2 requests, in binary messages ─────
//! ```
//!
//! - [`Offer`] and [`accept`] are the two halves of the handshake, as headers, which the HTTP client and server send.
//! - [`over`] turns the binary messages on an upgraded connection into a byte stream; [`TunnelCloser`] ends it with a
//!   reason ([`CloseReason`]).
//! - `serve` (feature `device`) answers requests on it; `connect` (feature `cloud`) sends them.
//!
//! Both ends are bounded here, since neither trusts the other: messages, heads, concurrent streams, and data that is
//! buffered for a slow reader. HTTP/2 limits the flow of each stream separately, and its pings detect a peer that is
//! gone. This crate knows no routes, keys or devices.

#![warn(missing_docs)]

#[cfg(feature = "cloud")]
mod ask;
mod bounds;
mod close;
mod handshake;
mod messages;
#[cfg(feature = "device")]
mod serve;

#[cfg(feature = "cloud")]
pub use ask::{Connection, Pings, RequestSender, connect};
pub use close::{CloseMessage, CloseReason, TunnelCloser};
pub use handshake::{HandshakeError, Offer, accept};
pub use messages::{End, Pipe, over};
#[cfg(feature = "device")]
pub use serve::serve;

#[cfg(all(test, feature = "device", feature = "cloud"))]
mod fuzz_tests;
#[cfg(all(test, feature = "device", feature = "cloud"))]
mod tests;
