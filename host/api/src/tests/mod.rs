//! The API as its clients see it.

mod actions;
mod router;
mod sockets;
