//! The API as its clients see it.

mod actions;
mod plan;
mod router;
mod sockets;
