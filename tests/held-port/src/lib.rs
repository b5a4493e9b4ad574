//! A TCP port for a program that is started later, and perhaps repeatedly.
//!
//! Some programs cannot choose a free port themselves, because their address has to be known before they run, or has to
//! stay the same when they are started again. Whoever binds a port to learn a free number, closes the socket and then
//! starts the program loses the port now and then to somebody who binds one in between.
//!
//! A [`HeldPort`] keeps its socket instead, bound and not listening, with `SO_REUSEADDR`. Linux treats such a port like
//! this:
//!
//! - It does not assign the port to anybody, neither to a socket that is bound to port 0, with or without
//!   `SO_REUSEADDR`, nor to an outgoing connection: it takes only ports to which no socket is bound at the same address.
//!   (The exception is off by default: `net.ipv4.ip_autobind_reuse`, once all ports are in use.) So what listens at all
//!   addresses needs [`HeldPort::at_all_addresses`].
//! - A socket without `SO_REUSEADDR` cannot bind the port even by its number.
//! - A socket with `SO_REUSEADDR` that binds the port by its number can listen on it. Servers set the option: Rust's
//!   `TcpListener`, Go's `net.Listen`, PostgreSQL. So only a program that was given the number gets the port.
//! - While nobody listens, connections to it are refused.
//!
//! UDP ports cannot be held like this: two UDP sockets with `SO_REUSEADDR` would share the packets.

use std::io;
use std::net::{Ipv6Addr, SocketAddr};
use std::os::fd::OwnedFd;

use rustix::net::{
    AddressFamily, SocketFlags, SocketType, bind, getsockname, socket_with, sockopt,
};

/// A port of one address of this machine that nobody else receives while this value lives. Programs that know its
/// number can listen on it, one after the other.
#[derive(Debug)]
pub struct HeldPort {
    socket: OwnedFd,
    address: SocketAddr,
}

impl HeldPort {
    /// Holds a free port of 127.0.0.1.
    ///
    /// # Errors
    /// If the machine has none.
    pub fn new() -> io::Result<Self> {
        Self::at(SocketAddr::from(([127, 0, 0, 1], 0)))
    }

    /// Holds a port that is free at all addresses of this machine, of both versions of IP.
    ///
    /// # Errors
    /// If the machine has none, or no IPv6.
    pub fn at_all_addresses() -> io::Result<Self> {
        Self::at(SocketAddr::from((Ipv6Addr::UNSPECIFIED, 0)))
    }

    /// Holds the port of this address, or a free one in place of port 0.
    ///
    /// # Errors
    /// If a program listens on it, or the address does not belong to this machine.
    pub fn at(address: SocketAddr) -> io::Result<Self> {
        let family = match address {
            SocketAddr::V4(_) => AddressFamily::INET,
            SocketAddr::V6(_) => AddressFamily::INET6,
        };
        // Programs that are started do not inherit it: they would hold the port for longer than this value lives.
        let socket = socket_with(family, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
        sockopt::set_socket_reuseaddr(&socket, true)?;
        bind(&socket, &address)?;
        let address = SocketAddr::try_from(getsockname(&socket)?)?;
        Ok(HeldPort { socket, address })
    }

    /// Returns the address that a program can listen on.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Holds the port until this program ends, and returns the address that a program can listen on.
    pub fn keep(self) -> SocketAddr {
        // The kernel closes it.
        std::mem::forget(self.socket);
        self.address
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::net::{TcpListener, TcpStream};

    use super::*;

    /// Binds an address as a program does that does not set `SO_REUSEADDR`.
    fn bind_plainly(address: SocketAddr) -> io::Result<OwnedFd> {
        let socket = rustix::net::socket(AddressFamily::INET, SocketType::STREAM, None)?;
        bind(&socket, &address)?;
        Ok(socket)
    }

    #[test]
    fn a_held_port_is_nobody_elses_and_can_be_listened_on_repeatedly() {
        let held = HeldPort::new().unwrap();
        let address = held.address();
        let refusal = bind_plainly(address).expect_err("it is held");
        assert_eq!(refusal.kind(), io::ErrorKind::AddrInUse);
        for _ in 0..2 {
            let refusal = TcpStream::connect(address).expect_err("nobody listens");
            assert_eq!(refusal.kind(), io::ErrorKind::ConnectionRefused);
            let server = TcpListener::bind(address).expect("a server listens on it");
            TcpStream::connect(address).expect("the server is reached");
            let again = HeldPort::at(address).expect_err("somebody listens there");
            assert_eq!(again.kind(), io::ErrorKind::AddrInUse);
            drop(server);
        }
    }

    /// So many that the kernel would assign some of them twice, if it could: it chooses among some 14,000 ports.
    #[test]
    fn the_kernel_assigns_a_held_port_to_nobody_else() {
        let held: Vec<HeldPort> = (0..400).map(|_| HeldPort::new().unwrap()).collect();
        let addresses: HashSet<SocketAddr> = held.iter().map(HeldPort::address).collect();
        assert_eq!(addresses.len(), held.len());
    }

    #[test]
    fn a_port_of_all_addresses_is_nobody_elses_at_any() {
        let held = HeldPort::at_all_addresses().unwrap();
        let port = held.address().port();
        let refusal = bind_plainly(([127, 0, 0, 1], port).into()).expect_err("it is held");
        assert_eq!(refusal.kind(), io::ErrorKind::AddrInUse);
        TcpListener::bind(held.address()).expect("a server listens on it");
    }

    #[test]
    fn a_port_that_is_kept_is_held_without_a_value() {
        let kept = HeldPort::new().unwrap().keep();
        let refusal = bind_plainly(kept).expect_err("it is held");
        assert_eq!(refusal.kind(), io::ErrorKind::AddrInUse);
    }
}
