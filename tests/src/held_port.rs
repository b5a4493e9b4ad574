//! A port for a program that is started later, and perhaps repeatedly.

use std::io;
use std::net::SocketAddr;

use tokio::net::TcpSocket;

/// A free port of 127.0.0.1 that nobody else receives while this value lives.
///
/// The socket is bound and does not listen. A program that sets `SO_REUSEADDR`, as servers do, can listen on the
/// address anyway, while the kernel does not hand out the port as a free one.
#[derive(Debug)]
pub struct HeldPort {
    _socket: TcpSocket,
    address: SocketAddr,
}

impl HeldPort {
    /// Holds a free port.
    ///
    /// # Errors
    /// If the machine has none.
    pub fn new() -> io::Result<Self> {
        let socket = TcpSocket::new_v4()?;
        socket.set_reuseaddr(true)?;
        socket.bind(SocketAddr::from(([127, 0, 0, 1], 0)))?;
        let address = socket.local_addr()?;
        Ok(HeldPort {
            _socket: socket,
            address,
        })
    }

    /// Returns the address that a program can listen on.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}
