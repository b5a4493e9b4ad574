//! The API from its clients' point of view.

mod actions;
mod events;
mod locks;
mod metrics;
mod plan;
mod plugins;
mod router;
mod sockets;
