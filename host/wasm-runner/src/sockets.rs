//! A thin wasi:sockets layer over wasmtime's, for services that have their own loopback address.
//!
//! wasmtime can allow or deny an address; this layer changes addresses before that check, according to [`Rules`], and
//! changes them back in answers to the service. All other calls are passed through unchanged. A service with the host's
//! network, or with none, does not get this layer.

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

use crate::rules::Rules;

/// What is known about the sockets of a service in addition to wasmtime's data.
pub(crate) struct SocketTable {
    rules: Arc<Rules>,
    /// By the socket's number in the table of resources.
    facts: HashMap<(Protocol, u32), Facts>,
}

/// How a service sees one socket.
#[derive(Default)]
struct Facts {
    /// Whether the service sees an IPv6 socket: our addresses are IPv4, so the real one is not.
    as_ipv6: bool,
    /// The port that it was bound to, as entered in the table of ports.
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

/// The data of a service that the interfaces work on.
pub(crate) struct Sockets<'a> {
    pub(crate) inner: WasiSocketsCtxView<'a>,
    pub(crate) table: &'a mut SocketTable,
}

struct SocketsData;

impl HasData for SocketsData {
    type Data<'a> = Sockets<'a>;
}

/// Puts this layer over the interfaces that are already in `linker`.
pub(crate) fn add_to_linker<T: Send + 'static>(
    linker: &mut Linker<T>,
    sockets: fn(&mut T) -> Sockets<'_>,
) -> wasmtime::Result<()> {
    linker.allow_shadowing(true);
    wasi_tcp::add_to_linker::<T, SocketsData>(linker, sockets)?;
    wasi_udp::add_to_linker::<T, SocketsData>(linker, sockets)?;
    ip_name_lookup::add_to_linker::<T, SocketsData>(linker, sockets)?;
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

    /// Forgets a dropped socket, and releases its port.
    fn forget(&mut self, protocol: Protocol, socket: u32) {
        if let Some(facts) = self.table.facts.remove(&(protocol, socket))
            && let Some(port) = facts.port
        {
            self.table.rules.ports.release(protocol, port);
        }
    }

    /// Returns an address in the form for the service.
    fn shown(&self, protocol: Protocol, socket: u32, address: SocketAddr) -> IpSocketAddress {
        match address {
            SocketAddr::V4(v4) if self.is_as_ipv6(protocol, socket) => {
                SocketAddr::new(v4.ip().to_ipv6_mapped().into(), v4.port()).into()
            }
            address => address.into(),
        }
    }

    /// Returns the local address of a socket in the form for the service: with the port that it asked for.
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

    /// Returns our own address, with a port chosen by the system.
    fn own_address(&self) -> IpSocketAddress {
        SocketAddr::new(self.rules().address().into(), 0).into()
    }

    /// Returns how a socket is bound if a service requests the address `requested`.
    ///
    /// # Errors
    /// If the address does not belong to this service, or it already uses the port.
    fn binding(&self, requested: SocketAddr, protocol: Protocol) -> Result<Binding, ErrorCode> {
        if !self.rules().is_local(requested.ip()) {
            return Err(ErrorCode::AddressNotBindable);
        }
        let is_unspecified = requested.ip().to_canonical().is_unspecified();
        if protocol == Protocol::Udp && is_unspecified && requested.port() == 0 {
            // Typical for clients: if bound to a loopback address, the socket could not reach other machines.
            return Ok(Binding::Anywhere);
        }
        let port = (requested.port() != 0).then_some(requested.port());
        if port.is_some_and(|port| self.rules().ports.real(protocol, port).is_some()) {
            return Err(ErrorCode::AddressInUse);
        }
        Ok(Binding::Own(port))
    }

    /// Notes that the socket is bound to `port`, or to the port that the system chose.
    fn bound(&mut self, protocol: Protocol, socket: u32, port: Option<u16>, real: u16) {
        let port = port.unwrap_or(real);
        self.facts(protocol, socket).port = Some(port);
        self.rules().ports.bind(protocol, port, real);
    }
}

/// How a socket is bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Binding {
    /// To our own address, with the port that the service asked for, if any.
    Own(Option<u16>),
    /// To an address chosen by the system.
    Anywhere,
}

/// Returns another handle to the same network, which is a capability without content.
fn again(network: &Resource<Network>) -> Resource<Network> {
    Resource::new_borrow(network.rep())
}

fn socket_again<T: 'static>(socket: &Resource<T>) -> Resource<T> {
    Resource::new_borrow(socket.rep())
}

/// Methods that this layer does not change: they go to wasmtime's implementation of the same trait.
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

/// Methods that TCP and UDP sockets have in common: a service sees its socket with the addresses and the family that it
/// asked for. The two traits are wasmtime's, so no function can be generic over them.
macro_rules! visible_socket {
    ($host:ident of $resource:ty, $protocol:ident) => {
        fn local_address(&mut self, socket: Resource<$resource>) -> SocketResult<IpSocketAddress> {
            let number = socket.rep();
            let address = $host::local_address(&mut self.inner, socket)?;
            Ok(self.shown_local($protocol, number, address.into()))
        }

        fn remote_address(&mut self, socket: Resource<$resource>) -> SocketResult<IpSocketAddress> {
            let number = socket.rep();
            let address = $host::remote_address(&mut self.inner, socket)?;
            let believed = self.rules().known_as(address.into());
            Ok(self.shown($protocol, number, believed))
        }

        fn address_family(
            &mut self,
            socket: Resource<$resource>,
        ) -> wasmtime::Result<IpAddressFamily> {
            if self.is_as_ipv6($protocol, socket.rep()) {
                return Ok(IpAddressFamily::Ipv6);
            }
            $host::address_family(&mut self.inner, socket)
        }

        fn drop(&mut self, socket: Resource<$resource>) -> wasmtime::Result<()> {
            self.forget($protocol, socket.rep());
            $host::drop(&mut self.inner, socket)
        }
    };
}
use visible_socket;

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
