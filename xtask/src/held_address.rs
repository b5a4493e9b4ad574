//! Addresses for programs that are started later: held from when they are chosen, so that nobody else gets them
//! meanwhile.

use std::io;
use std::net::SocketAddr;

use parking_lot::Mutex;
use tokio::net::TcpSocket;

/// Sockets that have an address and do not listen, until this program ends.
static HELD: Mutex<Vec<TcpSocket>> = Mutex::new(Vec::new());

/// Holds an address, with a free port in place of port 0. A program that sets `SO_REUSEADDR`, as servers do, can listen
/// on it all the same; the kernel gives the port to nobody who asks for a free one.
///
/// # Errors
/// Where somebody listens on it, or it is not this machine's.
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

/// Holds a free port of this machine.
///
/// # Errors
/// Where there is none.
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
        // The kernel gives nobody a port that is bound, and a free one would seldom be this one by chance.
        let other = TcpSocket::new_v4().unwrap();
        let refusal = other.bind(held).expect_err("it is held");
        assert_eq!(refusal.kind(), io::ErrorKind::AddrInUse);
        let server = TcpListener::bind(held).expect("a server listens on it");
        let again = hold(held).expect_err("somebody listens there");
        assert_eq!(again.kind(), io::ErrorKind::AddrInUse);
        drop(server);
    }
}
