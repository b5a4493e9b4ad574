//! The kernel's route to an address: out of this machine, to the machine itself, or to containers on it.
//!
//! Asks the kernel by netlink (rtnetlink(7)) for the decision that applies to a connection, including policy rules, so
//! nothing has to be guessed from names of interfaces or from lists of routes. The sockets are opened once, before the
//! process is restricted to those of the internet.

mod messages;

use std::collections::{BTreeMap, HashMap};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::OwnedFd;
use std::time::Duration;

use parking_lot::Mutex;
use rustix::io::Errno;
use rustix::net::netlink::SocketAddrNetlink;
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, bind, recv, sendto, socket_with,
};

use messages::{Link, Reply, RouteKind};

/// The changes that the kernel reports: interfaces, addresses, routes and rules (`RTMGRP_*`).
const GROUPS: u32 = 0x1 | 0x10 | 0x40 | 0x80 | 0x100 | 0x400 | 0x800;
/// How long the kernel may take; normally its answer is there when the request's call returns.
const WITHIN: Duration = Duration::from_secs(2);
/// The longest answer: the kernel's limit for a list of interfaces.
const LONGEST: usize = 32 << 10;
/// How many addresses are remembered.
const REMEMBERED: usize = 256;
/// Addresses that nobody has (RFC 5737, RFC 3849): their route is that to the rest of the world.
const ELSEWHERE_V4: IpAddr = IpAddr::V4(Ipv4Addr::new(198, 51, 100, 1));
const ELSEWHERE_V6: IpAddr = IpAddr::V6(Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1));

/// Kinds of interfaces that connect a bridge to containers and virtual machines of this machine; a bridge with any
/// other kind belongs to a network that continues outside.
const INSIDE: [&str; 3] = ["veth", "tun", "dummy"];

/// Where a packet to an address goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    /// To another machine, as far as this one can determine.
    Outward,
    /// The address is this machine's own.
    Host,
    /// Over a bridge that only leads to containers of this machine.
    Containers,
    /// To many, or to the nearest: a broadcast, multicast or anycast address.
    Many,
    /// Nowhere: the kernel itself refuses it.
    Nowhere,
}

/// The kernel's current decisions.
pub(crate) struct Routes {
    asking: Mutex<Questions>,
    /// Receives notices of changes.
    notifications: OwnedFd,
    memory: Mutex<HashMap<(IpAddr, u32), Way>>,
}

struct Questions {
    socket: OwnedFd,
    sequence: u32,
}

impl Routes {
    /// # Errors
    /// If the system does not let this process ask.
    pub(crate) fn open() -> io::Result<Self> {
        let notifications = netlink(SocketFlags::CLOEXEC | SocketFlags::NONBLOCK)?;
        bind(&notifications, &SocketAddrNetlink::new(0, GROUPS))?;
        let socket = netlink(SocketFlags::CLOEXEC)?;
        set_socket_timeout(&socket, Timeout::Recv, Some(WITHIN))?;
        bind(&socket, &SocketAddrNetlink::new(0, 0))?;
        let routes = Routes {
            asking: Mutex::new(Questions {
                socket,
                sequence: 0,
            }),
            notifications,
            memory: Mutex::default(),
        };
        // Asking now shows whether it will work later.
        routes.way_to(SocketAddr::new(Ipv4Addr::LOCALHOST.into(), 0))?;
        Ok(routes)
    }

    /// Returns the route to the address of `to`, whose port does not matter.
    ///
    /// # Errors
    /// If the kernel does not answer.
    pub(crate) fn way_to(&self, to: SocketAddr) -> io::Result<Way> {
        let address = to.ip().to_canonical();
        let scope = match to {
            SocketAddr::V6(v6) => v6.scope_id(),
            SocketAddr::V4(_) => 0,
        };
        let mut memory = self.memory.lock();
        // Checked before an answer is remembered, so the next call notices later changes.
        if self.has_changed() || memory.len() >= REMEMBERED {
            memory.clear();
        }
        if let Some(way) = memory.get(&(address, scope)) {
            return Ok(*way);
        }
        let way = self.asking.lock().way_to(address, scope)?;
        memory.insert((address, scope), way);
        Ok(way)
    }

    fn has_changed(&self) -> bool {
        let mut changed = false;
        loop {
            // A longer notice is cut off: its existence is enough.
            match recv(&self.notifications, &mut [0_u8; 16], RecvFlags::DONTWAIT) {
                Ok(_) => changed = true,
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return changed,
                // More notices than the kernel keeps for us, or an unexpected error: nothing stays remembered.
                Err(_) => return true,
            }
        }
    }
}

fn netlink(flags: SocketFlags) -> io::Result<OwnedFd> {
    // NETLINK_ROUTE is 0, the default protocol.
    let socket = socket_with(AddressFamily::NETLINK, SocketType::RAW, flags, None)?;
    Ok(socket)
}

impl Questions {
    fn way_to(&mut self, address: IpAddr, scope: u32) -> io::Result<Way> {
        let Some((kind, interface)) = self.route(address, scope)? else {
            return Ok(Way::Nowhere);
        };
        match kind {
            RouteKind::Unicast => {}
            RouteKind::Local => return Ok(Way::Host),
            RouteKind::Many => return Ok(Way::Many),
            RouteKind::Other => return Ok(Way::Nowhere),
        }
        let links = self.links()?;
        let Some(link) = links.get(&interface) else {
            return Err(io::Error::other(
                "a route leads to an interface that is not there",
            ));
        };
        if link.kind.as_deref() != Some("bridge") {
            return Ok(Way::Outward);
        }
        let leads_out = links.values().any(|port| {
            let is_inside = |kind: &str| INSIDE.contains(&kind);
            port.master == Some(interface) && !port.kind.as_deref().is_some_and(is_inside)
        });
        if leads_out {
            return Ok(Way::Outward);
        }
        let elsewhere = match address {
            IpAddr::V4(_) => ELSEWHERE_V4,
            IpAddr::V6(_) => ELSEWHERE_V6,
        };
        let out = self.route(elsewhere, 0)?;
        Ok(match out {
            Some((RouteKind::Unicast, out)) if out == interface => Way::Outward,
            _ => Way::Containers,
        })
    }

    /// Returns what the kernel does with packets to an address, and on which interface; `None` if it refuses them.
    fn route(&mut self, address: IpAddr, scope: u32) -> io::Result<Option<(RouteKind, u32)>> {
        self.sequence = self.sequence.wrapping_add(1);
        self.send(&messages::route_to(self.sequence, address, scope))?;
        let mut route = None;
        let outcome = self.read(&mut |reply| {
            if let Reply::Route { kind, interface } = reply {
                route = Some((kind, interface));
            }
            route.is_some()
        });
        match outcome {
            Ok(()) => Ok(route),
            // No route, or one that forbids it.
            Err(error)
                if matches!(
                    Errno::from_io_error(&error),
                    Some(Errno::NETUNREACH | Errno::HOSTUNREACH | Errno::ACCESS | Errno::INVAL)
                ) =>
            {
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    fn links(&mut self) -> io::Result<BTreeMap<u32, Link>> {
        self.sequence = self.sequence.wrapping_add(1);
        self.send(&messages::all_links(self.sequence))?;
        let mut links = BTreeMap::new();
        self.read(&mut |reply| {
            if let Reply::Link { index, link } = reply {
                links.insert(index, link);
            }
            false
        })?;
        Ok(links)
    }

    fn send(&self, question: &[u8]) -> io::Result<()> {
        let kernel = SocketAddrNetlink::new(0, 0);
        sendto(&self.socket, question, SendFlags::empty(), &kernel)?;
        Ok(())
    }

    /// Passes on the replies to the last request, until the last one or until `take` has what it needs.
    fn read(&self, take: &mut dyn FnMut(Reply) -> bool) -> io::Result<()> {
        let mut buffer = vec![0; LONGEST];
        loop {
            // With this flag the whole length is returned, even if it exceeds the buffer.
            let (_, length) = match recv(&self.socket, &mut buffer[..], RecvFlags::TRUNC) {
                Err(Errno::INTR) => continue,
                received => received?,
            };
            let Some(received) = buffer.get(..length) else {
                return Err(io::Error::other("the kernel's answer is too long"));
            };
            for reply in messages::replies(received, self.sequence) {
                match reply? {
                    Reply::Done => return Ok(()),
                    reply => {
                        if take(reply) {
                            return Ok(());
                        }
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
