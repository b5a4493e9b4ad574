//! The API as its clients see it.

mod actions;
mod locks;
mod plan;
mod router;
mod sockets;
