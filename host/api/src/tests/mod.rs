//! The API as its clients see it.

mod router;
mod sockets;
