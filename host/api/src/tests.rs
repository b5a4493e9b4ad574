//! The API as its clients see it.

mod actions;
mod events;
mod locks;
mod metrics;
mod plan;
mod plugins;
mod router;
mod sockets;
