//! TCP: binding, connecting and the visible addresses are ours; the rest is wasmtime's.

use std::net::SocketAddr;

use futures::FutureExt as _;
use model::Protocol;
use wasmtime::component::Resource;
use wasmtime_wasi::p2::bindings::sockets::network::{
    ErrorCode, IpAddressFamily, IpSocketAddress, Network,
};
use wasmtime_wasi::p2::bindings::sockets::tcp::{self, HostTcpSocket, ShutdownType};
use wasmtime_wasi::p2::bindings::sockets::tcp_create_socket;
use wasmtime_wasi::p2::{
    DynInputStream, DynOutputStream, DynPollable, SocketError, SocketResult, TcpSocket,
};

use super::{Binding, Sockets, again, pass_on, socket_again, visible_socket};

const TCP: Protocol = Protocol::Tcp;

impl tcp::Host for Sockets<'_> {}

impl Sockets<'_> {
    /// Replaces an IPv6 socket that was not used yet with an IPv4 one.
    fn tcp_becomes_ipv4(&mut self, socket: &Resource<TcpSocket>) -> SocketResult<()> {
        let family = HostTcpSocket::address_family(&mut self.inner, socket_again(socket));
        if family.map_err(SocketError::trap)? == IpAddressFamily::Ipv4 {
            return Ok(());
        }
        let fresh =
            tcp_create_socket::Host::create_tcp_socket(&mut self.inner, IpAddressFamily::Ipv4)?;
        let fresh = self.inner.table.delete(fresh)?;
        *self.inner.table.get_mut(socket)? = fresh;
        self.facts(TCP, socket.rep()).as_ipv6 = true;
        Ok(())
    }
}

impl HostTcpSocket for Sockets<'_> {
    async fn start_bind(
        &mut self,
        socket: Resource<TcpSocket>,
        network: Resource<Network>,
        address: IpSocketAddress,
    ) -> SocketResult<()> {
        let Binding::Own(port) = self.binding(address.into(), TCP)? else {
            return Err(ErrorCode::InvalidArgument.into());
        };
        self.tcp_becomes_ipv4(&socket)?;
        let own = self.own_address();
        let this = socket_again(&socket);
        HostTcpSocket::start_bind(&mut self.inner, this, network, own).await?;
        let this = socket_again(&socket);
        let real: SocketAddr = HostTcpSocket::local_address(&mut self.inner, this)?.into();
        self.bound(TCP, socket.rep(), port, real.port());
        Ok(())
    }

    fn start_connect(
        &mut self,
        socket: Resource<TcpSocket>,
        network: Resource<Network>,
        address: IpSocketAddress,
    ) -> SocketResult<()> {
        let Some(real) = self.rules().destination(address.into(), TCP) else {
            return Err(ErrorCode::ConnectionRefused.into());
        };
        if real.is_ipv4() {
            self.tcp_becomes_ipv4(&socket)?;
        }
        let this = socket_again(&socket);
        let is_bound = HostTcpSocket::local_address(&mut self.inner, this).is_ok();
        if !is_bound && self.rules().shows_own_address(real.ip()) {
            // The other service sees who connects, and the API counts the connections of each service.
            let (this, net, own) = (socket_again(&socket), again(&network), self.own_address());
            // Binding only waits for the rules, which answer at once.
            let bind = HostTcpSocket::start_bind(&mut self.inner, this, net, own);
            bind.now_or_never().ok_or(ErrorCode::Unknown)??;
            HostTcpSocket::finish_bind(&mut self.inner, socket_again(&socket))?;
        }
        HostTcpSocket::start_connect(&mut self.inner, socket, network, real.into())
    }

    async fn start_listen(&mut self, socket: Resource<TcpSocket>) -> SocketResult<()> {
        HostTcpSocket::start_listen(&mut self.inner, socket).await
    }

    fn accept(
        &mut self,
        socket: Resource<TcpSocket>,
    ) -> SocketResult<(
        Resource<TcpSocket>,
        Resource<DynInputStream>,
        Resource<DynOutputStream>,
    )> {
        let listener = socket.rep();
        let (accepted, input, output) = HostTcpSocket::accept(&mut self.inner, socket)?;
        if self.is_as_ipv6(TCP, listener) {
            self.facts(TCP, accepted.rep()).as_ipv6 = true;
        }
        Ok((accepted, input, output))
    }

    visible_socket! { HostTcpSocket of TcpSocket, TCP }

    pass_on! { HostTcpSocket of TcpSocket:
        fn finish_bind() -> SocketResult<()>;
        fn finish_connect() -> SocketResult<(Resource<DynInputStream>, Resource<DynOutputStream>)>;
        fn finish_listen() -> SocketResult<()>;
        fn is_listening() -> wasmtime::Result<bool>;
        fn set_listen_backlog_size(value: u64) -> SocketResult<()>;
        fn keep_alive_enabled() -> SocketResult<bool>;
        fn set_keep_alive_enabled(value: bool) -> SocketResult<()>;
        fn keep_alive_idle_time() -> SocketResult<u64>;
        fn set_keep_alive_idle_time(value: u64) -> SocketResult<()>;
        fn keep_alive_interval() -> SocketResult<u64>;
        fn set_keep_alive_interval(value: u64) -> SocketResult<()>;
        fn keep_alive_count() -> SocketResult<u32>;
        fn set_keep_alive_count(value: u32) -> SocketResult<()>;
        fn hop_limit() -> SocketResult<u8>;
        fn set_hop_limit(value: u8) -> SocketResult<()>;
        fn receive_buffer_size() -> SocketResult<u64>;
        fn set_receive_buffer_size(value: u64) -> SocketResult<()>;
        fn send_buffer_size() -> SocketResult<u64>;
        fn set_send_buffer_size(value: u64) -> SocketResult<()>;
        fn subscribe() -> wasmtime::Result<Resource<DynPollable>>;
        fn shutdown(how: ShutdownType) -> SocketResult<()>;
    }
}
