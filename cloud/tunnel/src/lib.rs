//! The tunnel between a device and its cloud: HTTP/2 over one WebSocket that the device opens, on which the
//! cloud is the one who asks.
//!
//! ```text
//! device ── GET /device/v3/<uuid>/tunnel, upgraded ──► cloud
//!        ◄── HTTP/2 requests, in binary messages ─────
//! ```
//!
//! - [`Offer`] and [`accept`] are the two halves of the handshake, as headers: whoever speaks HTTP sends them.
//! - [`over`] makes a byte stream of the binary messages on an upgraded connection; [`TunnelCloser`] ends it with a
//!   word ([`CloseReason`]).
//! - `serve` (feature `device`) answers requests on it; `connect` (feature `cloud`) sends them.
//!
//! Both ends are bounded here, since neither trusts the other: messages, heads, streams at a time, and what is
//! held for a reader that is slow. HTTP/2 holds back each stream by itself, and its pings find a peer that is
//! gone. It knows no route, no key and no device.

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
