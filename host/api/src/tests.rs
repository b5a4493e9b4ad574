//! The API as its clients see it.

mod actions;
mod events;
mod locks;
mod metrics;
mod plan;
mod router;
mod sockets;
