//! Addresses for programs that are started later: they are reserved as soon as they are chosen, so that no other
//! program gets them.

use std::io;
use std::net::SocketAddr;

use parking_lot::Mutex;
use tokio::net::TcpSocket;

/// Sockets that are bound to an address and do not listen, until this program ends.
static HELD: Mutex<Vec<TcpSocket>> = Mutex::new(Vec::new());

/// Reserves an address, with a free port in place of port 0. A program that sets `SO_REUSEADDR`, as servers do, can
/// still listen on it; the kernel does not assign the port to programs that request a free one.
///
/// # Errors
/// If another program listens on it, or it does not belong to this machine.
pub(crate) fn hold(address: SocketAddr) -> io::Result<SocketAddr> {
    let socket = match address {
        SocketAddr::V4(_) => TcpSocket::new_v4()?,
        SocketAddr::V6(_) => TcpSocket::new_v6()?,
    };
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    let address = socket.local_addr()?;
    HELD.lock().push(socket);
    Ok(address)
}

/// Reserves a free port of this machine.
///
/// # Errors
/// If there is none.
pub(crate) fn hold_free() -> io::Result<SocketAddr> {
    hold(SocketAddr::from(([127, 0, 0, 1], 0)))
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn a_held_address_is_nobody_elses_and_can_be_listened_on() {
        let held = hold_free().unwrap();
        // The kernel does not assign a bound port, and would rarely choose this one by chance.
        let other = TcpSocket::new_v4().unwrap();
        let refusal = other.bind(held).expect_err("it is held");
        assert_eq!(refusal.kind(), io::ErrorKind::AddrInUse);
        let server = TcpListener::bind(held).expect("a server listens on it");
        let again = hold(held).expect_err("somebody listens there");
        assert_eq!(again.kind(), io::ErrorKind::AddrInUse);
        drop(server);
    }
}
