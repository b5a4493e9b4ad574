//! The addresses that a service can reach, and their real addresses.
//!
//! A service believes that it is alone on its machine: if it binds to "all addresses" or to the loopback, it is bound
//! to its own loopback address, and if it connects to the loopback, it reaches itself. [`Rules::destination`] returns
//! where a connection goes; wasmtime calls [`Rules::allows`] before every use of an address, after all rewriting, and
//! the default is to refuse. Sockets are opened here only to ask the kernel where an address leads ([`Routes`]).

use std::collections::VecDeque;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::sync::Arc;

use model::Protocol;
use parking_lot::Mutex;
use wasm_service::record::{
    self, Api, ExtraHost, Member, Members, OwnNetwork, PORTS, PortTable, STATE, State, Status, near,
};
use wasmtime_wasi::sockets::SocketAddrUse;

use crate::ports::PortMap;
use crate::routes::{Routes, Way};

/// How many addresses are remembered for answers to datagrams, and how many ports that differ.
const REMEMBERED: usize = 256;
/// An address for documentation (RFC 5737): it is on no network, and so never the host's.
const NOBODY: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1));
/// The metadata addresses of clouds, which return the machine's credentials: every program on the machine reaches them,
/// and no service needs them unless its release names them.
const METADATA: [IpAddr; 11] = [
    IpAddr::V4(Ipv4Addr::new(169, 254, 169, 254)),
    IpAddr::V4(Ipv4Addr::new(169, 254, 170, 2)),
    IpAddr::V4(Ipv4Addr::new(169, 254, 170, 23)),
    IpAddr::V4(Ipv4Addr::new(100, 100, 100, 200)),
    IpAddr::V4(Ipv4Addr::new(168, 63, 129, 16)),
    IpAddr::V4(Ipv4Addr::new(192, 0, 0, 192)),
    IpAddr::V6(Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0xa9fe, 0xa9fe)),
    IpAddr::V6(Ipv6Addr::new(0xfd00, 0xc1, 0, 0, 0, 0, 0xa9fe, 0xa9fe)),
    IpAddr::V6(Ipv6Addr::new(0xfd20, 0xce, 0, 0, 0, 0, 0, 0x254)),
    IpAddr::V6(Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254)),
    IpAddr::V6(Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x23)),
];

/// The rules of one service that has its own loopback address.
pub(crate) struct Rules {
    network: OwnNetwork,
    /// The real ports of this service.
    pub(crate) ports: Arc<PortMap>,
    /// Where addresses lead; without it only services are reached.
    routes: Option<Routes>,
    memory: Mutex<Memory>,
}

#[derive(Default)]
struct Memory {
    /// Senders of datagrams to us, which may be answered.
    senders: VecDeque<SocketAddr>,
    /// Receivers of datagrams from us, which may answer.
    receivers: VecDeque<SocketAddr>,
    /// Addresses whose real port differs: the real address, and the one that the service knows.
    changed: VecDeque<(SocketAddr, SocketAddr)>,
}

/// The result of resolving a name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Resolution {
    Address(IpAddr),
    /// The system's resolver is asked.
    AskSystem,
    Unknown,
}

impl Rules {
    /// `routes` is `None` if the kernel cannot be asked.
    pub(crate) fn new(network: OwnNetwork, ports: Arc<PortMap>, routes: Option<Routes>) -> Self {
        Rules {
            network,
            ports,
            routes,
            memory: Mutex::default(),
        }
    }

    /// Returns this service's own address.
    pub(crate) fn address(&self) -> Ipv4Addr {
        self.network.address
    }

    /// Returns whether a connection to `real` comes from our own address: one to a service or to the API does.
    pub(crate) fn shows_own_address(&self, real: IpAddr) -> bool {
        real.is_ipv4() && real.is_loopback()
    }

    /// Whether a request to listen at `address` means the service's own address.
    pub(crate) fn is_local(&self, address: IpAddr) -> bool {
        let canonical = address.to_canonical();
        canonical.is_unspecified()
            || is_plain_loopback(canonical)
            || canonical == self.network.address
    }

    /// Returns where a connection to `address` goes; `None` if nobody listens there. Whether it is allowed is decided
    /// by [`Rules::allows`].
    pub(crate) fn destination(
        &self,
        address: SocketAddr,
        protocol: Protocol,
    ) -> Option<SocketAddr> {
        let ip = address.ip().to_canonical();
        let port = address.port();
        if let Some(api) = &self.network.api
            && port == api.address.port()
            && (is_plain_loopback(ip) || self.api_host(api) == Some(ip))
        {
            return Some(api.address);
        }
        let as_it_is = SocketAddr::new(ip, port);
        if protocol == Protocol::Udp && self.memory.lock().senders.contains(&as_it_is) {
            // An answer goes back to the sender, whatever other rules say.
            return Some(as_it_is);
        }
        let IpAddr::V4(v4) = (if is_plain_loopback(ip) {
            self.network.address.into()
        } else {
            ip
        }) else {
            return Some(as_it_is);
        };
        if !v4.is_loopback() {
            return Some(as_it_is);
        }
        let inner = SocketAddr::new(v4.into(), port);
        let real = self.own_port(v4, protocol, port).or_else(|| {
            let mut tables = self.port_tables(v4);
            tables.find_map(|table| table.for_protocol(protocol).get(&port).copied())
        })?;
        let real = SocketAddr::new(v4.into(), real);
        remember(&mut self.memory.lock().changed, (real, inner));
        Some(real)
    }

    /// Returns the address under which the service knows `real`: the requested one, if its port differs.
    pub(crate) fn known_as(&self, real: SocketAddr) -> SocketAddr {
        let memory = self.memory.lock();
        let entry = memory.changed.iter().rev().find(|(is, _)| *is == real);
        entry.map_or(real, |(_, inner)| *inner)
    }

    /// Whether `address` may be used like this, after all rewriting.
    pub(crate) fn allows(&self, address: SocketAddr, usage: SocketAddrUse) -> bool {
        match usage {
            SocketAddrUse::TcpBind | SocketAddrUse::UdpBind => {
                address.ip() == self.network.address
                    // Chosen by the system, for a socket that only sends requests.
                    || address.ip().is_unspecified() && address.port() == 0
            }
            // The socket has to be bound to our own address; others cannot listen.
            SocketAddrUse::TcpListen => address.ip() == self.network.address,
            // Only processes of this machine reach a loopback address.
            SocketAddrUse::TcpAccept => true,
            SocketAddrUse::TcpConnect => self.reaches(address, Protocol::Tcp),
            SocketAddrUse::UdpSend => {
                let answers = self.memory.lock().senders.contains(&address);
                let allowed = answers || self.reaches(address, Protocol::Udp);
                if allowed {
                    remember(&mut self.memory.lock().receivers, address);
                }
                allowed
            }
            SocketAddrUse::UdpReceive => {
                let mut memory = self.memory.lock();
                let allowed = address.ip().is_loopback() || memory.receivers.contains(&address);
                if allowed {
                    remember(&mut memory.senders, address);
                }
                allowed
            }
        }
    }

    fn reaches(&self, address: SocketAddr, protocol: Protocol) -> bool {
        let ip = address.ip().to_canonical();
        if let Some(api) = &self.network.api
            && address == api.address
        {
            return true;
        }
        if let IpAddr::V4(v4) = ip
            && v4.is_loopback()
        {
            // On another port there could only be a program of the host that listens on all addresses.
            let port = address.port();
            let is_own = v4 == self.network.address && self.ports.is_real(protocol, port);
            let mut tables = self.port_tables(v4);
            return is_own
                || tables.any(|table| {
                    table
                        .for_protocol(protocol)
                        .values()
                        .any(|real| *real == port)
                });
        }
        let is_a_machine = !ip.is_loopback() && !ip.is_unspecified() && !ip.is_multicast();
        if !is_a_machine || !self.network.outward {
            return false;
        }
        if METADATA.contains(&ip) && !self.has_extra_host(ExtraHost::Address(ip)) {
            return false;
        }
        let way = self.routes.as_ref().map(|routes| routes.way_to(address));
        match way {
            Some(Ok(Way::Outward)) => true,
            // The kernel itself reports the error.
            Some(Ok(Way::Nowhere)) => true,
            // The networks of a service lead out of the host, not to it.
            Some(Ok(Way::Host)) => self.has_extra_host(ExtraHost::HostGateway),
            // Containers of other apps, or of an engine's network that this service is not in.
            Some(Ok(Way::Containers)) => false,
            // A broadcast address does not belong to another machine.
            Some(Ok(Way::Many)) => false,
            Some(Err(_)) | None => false,
        }
    }

    /// Whether the service's release names this host.
    fn has_extra_host(&self, host: ExtraHost) -> bool {
        let mut hosts = self.network.extra_hosts.values();
        hosts.any(|other| *other == host)
    }

    /// Resolves `name` to a service, to a fixed address, or leaves it to the system.
    pub(crate) fn resolve(&self, name: &str) -> Resolution {
        let name = name.strip_suffix('.').unwrap_or(name).to_ascii_lowercase();
        if name == "localhost" {
            return Resolution::Address(self.network.address.into());
        }
        if let Some(api) = &self.network.api
            && api.host.eq_ignore_ascii_case(&name)
        {
            return Resolution::Address(api.address.ip());
        }
        if let Some(host) = self.network.extra_hosts.get(&name) {
            let address = match host {
                ExtraHost::Address(address) => Some(*address),
                ExtraHost::HostGateway => address_towards_others(),
            };
            return address.map_or(Resolution::Unknown, Resolution::Address);
        }
        if let Some(member) = self.member_named(&name) {
            return Resolution::Address(member.address.into());
        }
        let is_literal = name.parse::<IpAddr>().is_ok();
        if self.network.outward || is_literal {
            Resolution::AskSystem
        } else {
            Resolution::Unknown
        }
    }

    fn own_port(&self, address: Ipv4Addr, protocol: Protocol, port: u16) -> Option<u16> {
        let own = address == self.network.address;
        own.then(|| self.ports.real(protocol, port)).flatten()
    }

    /// Returns the ports of the containers at `address`: none if they share no network with this one.
    fn port_tables(&self, address: Ipv4Addr) -> impl Iterator<Item = PortTable> + '_ {
        let at_address = self
            .members()
            .filter(move |member| member.address == address);
        at_address.map(|member| port_table(&member))
    }

    /// Returns a running member if several have the name: during an update one takes over from another.
    fn member_named(&self, name: &str) -> Option<Member> {
        let mut named: Vec<Member> = self
            .members()
            .filter(|member| member.names.iter().any(|n| n.eq_ignore_ascii_case(name)))
            .collect();
        let running = named.iter().rposition(is_running);
        running.map(|index| named.swap_remove(index))
    }

    fn members(&self) -> impl Iterator<Item = Member> + '_ {
        self.network.tables.iter().flat_map(|table| {
            // A removed network has no members; a damaged table is written again by the engine with the next change.
            let members = record::read::<Members>(&near(table)).ok().flatten();
            members.unwrap_or_default().0
        })
    }

    fn api_host(&self, api: &Api) -> Option<IpAddr> {
        api.host.parse().ok()
    }
}

/// Whether this is the usual address of "this machine": in a service, the service itself.
fn is_plain_loopback(ip: IpAddr) -> bool {
    ip == Ipv4Addr::LOCALHOST || ip == Ipv6Addr::LOCALHOST
}

fn is_running(member: &Member) -> bool {
    let state = record::read::<State>(&near(&member.folder).join(STATE));
    matches!(state, Ok(Some(state)) if state.status == Status::Running)
}

fn port_table(member: &Member) -> PortTable {
    let table = record::read::<PortTable>(&near(&member.folder).join(PORTS));
    table.ok().flatten().unwrap_or_default()
}

/// Returns the host's address on the route to other machines. Connecting a datagram socket sends nothing.
fn address_towards_others() -> Option<IpAddr> {
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).ok()?;
    socket.connect((NOBODY, 9)).ok()?;
    let address = socket.local_addr().ok()?.ip();
    (!address.is_loopback()).then_some(address)
}

fn remember<T: PartialEq>(list: &mut VecDeque<T>, item: T) {
    if list.back() == Some(&item) {
        return;
    }
    list.retain(|other| *other != item);
    if list.len() == REMEMBERED {
        list.pop_front();
    }
    list.push_back(item);
}

#[cfg(test)]
mod tests;
