//! A thin wasi:sockets over wasmtime's, for services that have a loopback address of their own.
//!
//! wasmtime can allow or deny an address; here addresses are changed before it is asked, as [`Rules`]
//! says, and changed back where the service asks for them. Everything else goes through unchanged.
//! A service with the host's network, or with none, does not get this layer.

mod names;
mod tcp;
mod udp;

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;

use model::Protocol;
use wasmtime::component::{HasData, Linker, Resource};
use wasmtime_wasi::p2::SocketError;
use wasmtime_wasi::p2::bindings::sockets::network::{
    self, ErrorCode, HostNetwork, IpSocketAddress, Network,
};
use wasmtime_wasi::p2::bindings::sockets::{ip_name_lookup, tcp as wasi_tcp, udp as wasi_udp};
use wasmtime_wasi::sockets::WasiSocketsCtxView;

use crate::guest::Service;
use crate::rules::Rules;

/// What is known of the sockets of a service beside what wasmtime knows.
pub(crate) struct SocketTable {
    rules: Arc<Rules>,
    /// By the socket's number in the table of resources.
    facts: HashMap<(Protocol, u32), Facts>,
}

/// What a service believes of one socket.
#[derive(Default)]
struct Facts {
    /// It is one for IPv6: our addresses are of IPv4, so that the real one is not.
    as_ipv6: bool,
    /// The port that it was bound to, and has in the table of ports.
    port: Option<u16>,
}

impl SocketTable {
    pub(crate) fn new(rules: Arc<Rules>) -> Self {
        SocketTable {
            rules,
            facts: HashMap::new(),
        }
    }
}

/// The view of a service that the interfaces work on.
pub(crate) struct Sockets<'a> {
    inner: WasiSocketsCtxView<'a>,
    table: &'a mut SocketTable,
}

struct OurSockets;

impl HasData for OurSockets {
    type Data<'a> = Sockets<'a>;
}

/// Puts this layer over the interfaces that are in `linker` already.
pub(crate) fn add_to_linker(linker: &mut Linker<Service>) -> wasmtime::Result<()> {
    fn view(service: &mut Service) -> Sockets<'_> {
        let (inner, table) = service.sockets_and_table();
        Sockets { inner, table }
    }
    linker.allow_shadowing(true);
    wasi_tcp::add_to_linker::<Service, OurSockets>(linker, view)?;
    wasi_udp::add_to_linker::<Service, OurSockets>(linker, view)?;
    ip_name_lookup::add_to_linker::<Service, OurSockets>(linker, view)?;
    linker.allow_shadowing(false);
    Ok(())
}

impl Sockets<'_> {
    fn rules(&self) -> &Rules {
        &self.table.rules
    }

    fn facts(&mut self, protocol: Protocol, socket: u32) -> &mut Facts {
        self.table.facts.entry((protocol, socket)).or_default()
    }

    fn is_as_ipv6(&self, protocol: Protocol, socket: u32) -> bool {
        let facts = self.table.facts.get(&(protocol, socket));
        facts.is_some_and(|facts| facts.as_ipv6)
    }

    /// The socket is gone, and so is what it was bound to.
    fn forget(&mut self, protocol: Protocol, socket: u32) {
        if let Some(facts) = self.table.facts.remove(&(protocol, socket))
            && let Some(port) = facts.port
        {
            self.table.rules.ports.release(protocol, port);
        }
    }

    /// An address as the service is shown it.
    fn shown(&self, protocol: Protocol, socket: u32, address: SocketAddr) -> IpSocketAddress {
        match address {
            SocketAddr::V4(v4) if self.is_as_ipv6(protocol, socket) => {
                SocketAddr::new(v4.ip().to_ipv6_mapped().into(), v4.port()).into()
            }
            address => address.into(),
        }
    }

    /// The local address of a socket as the service is shown it: with the port that it asked for.
    fn shown_local(
        &self,
        protocol: Protocol,
        socket: u32,
        mut address: SocketAddr,
    ) -> IpSocketAddress {
        let facts = self.table.facts.get(&(protocol, socket));
        if let Some(port) = facts.and_then(|facts| facts.port) {
            address.set_port(port);
        }
        self.shown(protocol, socket, address)
    }

    /// Our own address, with a port of the system's choice.
    fn own_address(&self) -> IpSocketAddress {
        SocketAddr::new(self.rules().address().into(), 0).into()
    }

    /// What a service that asks to be bound to `asked` gets.
    ///
    /// # Errors
    /// Where the address is none of this service's, or the port is taken by itself.
    fn binding(&self, requested: SocketAddr, protocol: Protocol) -> Result<Binding, ErrorCode> {
        if !self.rules().is_local(requested.ip()) {
            return Err(ErrorCode::AddressNotBindable);
        }
        let is_unspecified = requested.ip().to_canonical().is_unspecified();
        if protocol == Protocol::Udp && is_unspecified && requested.port() == 0 {
            // What programs do that only ask others: bound to a loopback address, the socket would
            // reach no other machine.
            return Ok(Binding::Anywhere);
        }
        let port = (requested.port() != 0).then_some(requested.port());
        if port.is_some_and(|port| self.rules().ports.real(protocol, port).is_some()) {
            return Err(ErrorCode::AddressInUse);
        }
        Ok(Binding::Own(port))
    }

    /// Notes that the socket is bound: to `port`, or to the one that the system chose.
    fn bound(&mut self, protocol: Protocol, socket: u32, port: Option<u16>, real: u16) {
        let port = port.unwrap_or(real);
        self.facts(protocol, socket).port = Some(port);
        self.rules().ports.bind(protocol, port, real);
    }
}

/// How a socket is bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Binding {
    /// To our own address, with the port that the service believes to have, if it asked for one.
    Own(Option<u16>),
    /// To whatever the system takes.
    Anywhere,
}

/// The network is a capability without content: another handle to the same one.
fn again(network: &Resource<Network>) -> Resource<Network> {
    Resource::new_borrow(network.rep())
}

fn socket_again<T: 'static>(socket: &Resource<T>) -> Resource<T> {
    Resource::new_borrow(socket.rep())
}

/// Methods that this layer changes nothing in: they go to wasmtime's implementation of the same trait.
macro_rules! pass_on {
    ($host:ident of $resource:ty: $(
        fn $method:ident($($argument:ident: $type:ty)?) -> $answer:ty;
    )*) => {$(
        fn $method(&mut self, of: Resource<$resource>$(, $argument: $type)?) -> $answer {
            $host::$method(&mut self.inner, of$(, $argument)?)
        }
    )*};
}
use pass_on;

impl network::Host for Sockets<'_> {
    fn convert_error_code(&mut self, error: SocketError) -> wasmtime::Result<ErrorCode> {
        network::Host::convert_error_code(&mut self.inner, error)
    }

    fn network_error_code(
        &mut self,
        error: Resource<wasmtime::Error>,
    ) -> wasmtime::Result<Option<ErrorCode>> {
        network::Host::network_error_code(&mut self.inner, error)
    }
}

impl HostNetwork for Sockets<'_> {
    pass_on! { HostNetwork of Network:
        fn drop() -> wasmtime::Result<()>;
    }
}
