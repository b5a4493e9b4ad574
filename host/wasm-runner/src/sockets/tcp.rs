//! TCP: binding, connecting and the addresses shown are ours; the rest is wasmtime's.

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

use super::{Binding, Sockets, again, socket_again};

const TCP: Protocol = Protocol::Tcp;

impl tcp::Host for Sockets<'_> {}

impl Sockets<'_> {
    /// Puts a socket for IPv4 in the place of one for IPv6 that was not used yet.
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

    fn finish_bind(&mut self, socket: Resource<TcpSocket>) -> SocketResult<()> {
        HostTcpSocket::finish_bind(&mut self.inner, socket)
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
        if !is_bound && self.rules().is_a_service(real.ip()) {
            // So that the other service sees who calls it.
            let (this, net, own) = (socket_again(&socket), again(&network), self.own_address());
            // Binding waits for nothing but the rules, which answer at once.
            let bind = HostTcpSocket::start_bind(&mut self.inner, this, net, own);
            bind.now_or_never().ok_or(ErrorCode::Unknown)??;
            HostTcpSocket::finish_bind(&mut self.inner, socket_again(&socket))?;
        }
        HostTcpSocket::start_connect(&mut self.inner, socket, network, real.into())
    }

    fn finish_connect(
        &mut self,
        socket: Resource<TcpSocket>,
    ) -> SocketResult<(Resource<DynInputStream>, Resource<DynOutputStream>)> {
        HostTcpSocket::finish_connect(&mut self.inner, socket)
    }

    async fn start_listen(&mut self, socket: Resource<TcpSocket>) -> SocketResult<()> {
        HostTcpSocket::start_listen(&mut self.inner, socket).await
    }

    fn finish_listen(&mut self, socket: Resource<TcpSocket>) -> SocketResult<()> {
        HostTcpSocket::finish_listen(&mut self.inner, socket)
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

    fn local_address(&mut self, socket: Resource<TcpSocket>) -> SocketResult<IpSocketAddress> {
        let number = socket.rep();
        let address = HostTcpSocket::local_address(&mut self.inner, socket)?;
        Ok(self.shown_local(TCP, number, address.into()))
    }

    fn remote_address(&mut self, socket: Resource<TcpSocket>) -> SocketResult<IpSocketAddress> {
        let number = socket.rep();
        let address = HostTcpSocket::remote_address(&mut self.inner, socket)?;
        let known = self.rules().known_as(address.into());
        Ok(self.shown(TCP, number, known))
    }

    fn is_listening(&mut self, socket: Resource<TcpSocket>) -> wasmtime::Result<bool> {
        HostTcpSocket::is_listening(&mut self.inner, socket)
    }

    fn address_family(&mut self, socket: Resource<TcpSocket>) -> wasmtime::Result<IpAddressFamily> {
        if self.is_as_ipv6(TCP, socket.rep()) {
            return Ok(IpAddressFamily::Ipv6);
        }
        HostTcpSocket::address_family(&mut self.inner, socket)
    }

    fn drop(&mut self, socket: Resource<TcpSocket>) -> wasmtime::Result<()> {
        self.forget(TCP, socket.rep());
        HostTcpSocket::drop(&mut self.inner, socket)
    }

    fn set_listen_backlog_size(
        &mut self,
        socket: Resource<TcpSocket>,
        value: u64,
    ) -> SocketResult<()> {
        HostTcpSocket::set_listen_backlog_size(&mut self.inner, socket, value)
    }

    fn keep_alive_enabled(&mut self, socket: Resource<TcpSocket>) -> SocketResult<bool> {
        HostTcpSocket::keep_alive_enabled(&mut self.inner, socket)
    }

    fn set_keep_alive_enabled(
        &mut self,
        socket: Resource<TcpSocket>,
        value: bool,
    ) -> SocketResult<()> {
        HostTcpSocket::set_keep_alive_enabled(&mut self.inner, socket, value)
    }

    fn keep_alive_idle_time(&mut self, socket: Resource<TcpSocket>) -> SocketResult<u64> {
        HostTcpSocket::keep_alive_idle_time(&mut self.inner, socket)
    }

    fn set_keep_alive_idle_time(
        &mut self,
        socket: Resource<TcpSocket>,
        value: u64,
    ) -> SocketResult<()> {
        HostTcpSocket::set_keep_alive_idle_time(&mut self.inner, socket, value)
    }

    fn keep_alive_interval(&mut self, socket: Resource<TcpSocket>) -> SocketResult<u64> {
        HostTcpSocket::keep_alive_interval(&mut self.inner, socket)
    }

    fn set_keep_alive_interval(
        &mut self,
        socket: Resource<TcpSocket>,
        value: u64,
    ) -> SocketResult<()> {
        HostTcpSocket::set_keep_alive_interval(&mut self.inner, socket, value)
    }

    fn keep_alive_count(&mut self, socket: Resource<TcpSocket>) -> SocketResult<u32> {
        HostTcpSocket::keep_alive_count(&mut self.inner, socket)
    }

    fn set_keep_alive_count(
        &mut self,
        socket: Resource<TcpSocket>,
        value: u32,
    ) -> SocketResult<()> {
        HostTcpSocket::set_keep_alive_count(&mut self.inner, socket, value)
    }

    fn hop_limit(&mut self, socket: Resource<TcpSocket>) -> SocketResult<u8> {
        HostTcpSocket::hop_limit(&mut self.inner, socket)
    }

    fn set_hop_limit(&mut self, socket: Resource<TcpSocket>, value: u8) -> SocketResult<()> {
        HostTcpSocket::set_hop_limit(&mut self.inner, socket, value)
    }

    fn receive_buffer_size(&mut self, socket: Resource<TcpSocket>) -> SocketResult<u64> {
        HostTcpSocket::receive_buffer_size(&mut self.inner, socket)
    }

    fn set_receive_buffer_size(
        &mut self,
        socket: Resource<TcpSocket>,
        value: u64,
    ) -> SocketResult<()> {
        HostTcpSocket::set_receive_buffer_size(&mut self.inner, socket, value)
    }

    fn send_buffer_size(&mut self, socket: Resource<TcpSocket>) -> SocketResult<u64> {
        HostTcpSocket::send_buffer_size(&mut self.inner, socket)
    }

    fn set_send_buffer_size(
        &mut self,
        socket: Resource<TcpSocket>,
        value: u64,
    ) -> SocketResult<()> {
        HostTcpSocket::set_send_buffer_size(&mut self.inner, socket, value)
    }

    fn subscribe(
        &mut self,
        socket: Resource<TcpSocket>,
    ) -> wasmtime::Result<Resource<DynPollable>> {
        HostTcpSocket::subscribe(&mut self.inner, socket)
    }

    fn shutdown(&mut self, socket: Resource<TcpSocket>, how: ShutdownType) -> SocketResult<()> {
        HostTcpSocket::shutdown(&mut self.inner, socket, how)
    }
}
