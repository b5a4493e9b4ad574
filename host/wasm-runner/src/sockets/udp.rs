//! UDP: binding, the addresses of datagrams and the visible addresses are ours; the rest is wasmtime's.

use std::net::SocketAddr;

use model::Protocol;
use wasmtime::component::Resource;
use wasmtime_wasi::p2::bindings::sockets::network::{
    ErrorCode, IpAddressFamily, IpSocketAddress, Network,
};
use wasmtime_wasi::p2::bindings::sockets::udp::{
    self, HostIncomingDatagramStream, HostOutgoingDatagramStream, HostUdpSocket, IncomingDatagram,
    IncomingDatagramStream, OutgoingDatagram, OutgoingDatagramStream,
};
use wasmtime_wasi::p2::bindings::sockets::udp_create_socket;
use wasmtime_wasi::p2::{DynPollable, SocketError, SocketResult, UdpSocket};

use super::{Binding, Sockets, pass_on, socket_again, visible_socket};

const UDP: Protocol = Protocol::Udp;

impl udp::Host for Sockets<'_> {}

impl Sockets<'_> {
    /// Replaces an IPv6 socket that was not used yet with an IPv4 one.
    async fn udp_becomes_ipv4(&mut self, socket: &Resource<UdpSocket>) -> SocketResult<()> {
        let family = HostUdpSocket::address_family(&mut self.inner, socket_again(socket));
        if family.map_err(SocketError::trap)? == IpAddressFamily::Ipv4 {
            return Ok(());
        }
        let fresh =
            udp_create_socket::Host::create_udp_socket(&mut self.inner, IpAddressFamily::Ipv4)
                .await?;
        let fresh = self.inner.table.delete(fresh)?;
        *self.inner.table.get_mut(socket)? = fresh;
        self.facts(UDP, socket.rep()).as_ipv6 = true;
        Ok(())
    }

    fn datagram_destination(
        &self,
        requested: IpSocketAddress,
    ) -> Result<IpSocketAddress, ErrorCode> {
        let real = self.rules().destination(requested.into(), UDP);
        real.map(IpSocketAddress::from)
            .ok_or(ErrorCode::ConnectionRefused)
    }
}

impl HostUdpSocket for Sockets<'_> {
    async fn start_bind(
        &mut self,
        socket: Resource<UdpSocket>,
        network: Resource<Network>,
        address: IpSocketAddress,
    ) -> SocketResult<()> {
        let Binding::Own(port) = self.binding(address.into(), UDP)? else {
            return HostUdpSocket::start_bind(&mut self.inner, socket, network, address).await;
        };
        self.udp_becomes_ipv4(&socket).await?;
        let own = self.own_address();
        let this = socket_again(&socket);
        HostUdpSocket::start_bind(&mut self.inner, this, network, own).await?;
        let this = socket_again(&socket);
        let real: SocketAddr = HostUdpSocket::local_address(&mut self.inner, this)?.into();
        self.bound(UDP, socket.rep(), port, real.port());
        Ok(())
    }

    async fn stream(
        &mut self,
        socket: Resource<UdpSocket>,
        remote: Option<IpSocketAddress>,
    ) -> SocketResult<(
        Resource<IncomingDatagramStream>,
        Resource<OutgoingDatagramStream>,
    )> {
        let remote = remote.map(|remote| self.datagram_destination(remote));
        let as_ipv6 = self.is_as_ipv6(UDP, socket.rep());
        let streams = HostUdpSocket::stream(&mut self.inner, socket, remote.transpose()?).await?;
        // Resources of all kinds share one table, so their numbers are unique.
        self.facts(UDP, streams.0.rep()).as_ipv6 = as_ipv6;
        Ok(streams)
    }

    visible_socket! { HostUdpSocket of UdpSocket, UDP }

    pass_on! { HostUdpSocket of UdpSocket:
        fn finish_bind() -> SocketResult<()>;
        fn unicast_hop_limit() -> SocketResult<u8>;
        fn set_unicast_hop_limit(value: u8) -> SocketResult<()>;
        fn receive_buffer_size() -> SocketResult<u64>;
        fn set_receive_buffer_size(value: u64) -> SocketResult<()>;
        fn send_buffer_size() -> SocketResult<u64>;
        fn set_send_buffer_size(value: u64) -> SocketResult<()>;
        fn subscribe() -> wasmtime::Result<Resource<DynPollable>>;
    }
}

impl HostIncomingDatagramStream for Sockets<'_> {
    fn receive(
        &mut self,
        stream: Resource<IncomingDatagramStream>,
        most: u64,
    ) -> SocketResult<Vec<IncomingDatagram>> {
        let number = stream.rep();
        let mut datagrams = HostIncomingDatagramStream::receive(&mut self.inner, stream, most)?;
        for datagram in &mut datagrams {
            let believed = self.rules().known_as(datagram.remote_address.into());
            datagram.remote_address = self.shown(UDP, number, believed);
        }
        Ok(datagrams)
    }

    fn drop(&mut self, stream: Resource<IncomingDatagramStream>) -> wasmtime::Result<()> {
        self.forget(UDP, stream.rep());
        HostIncomingDatagramStream::drop(&mut self.inner, stream)
    }

    pass_on! { HostIncomingDatagramStream of IncomingDatagramStream:
        fn subscribe() -> wasmtime::Result<Resource<DynPollable>>;
    }
}

impl HostOutgoingDatagramStream for Sockets<'_> {
    fn send(
        &mut self,
        stream: Resource<OutgoingDatagramStream>,
        mut datagrams: Vec<OutgoingDatagram>,
    ) -> SocketResult<u64> {
        for index in 0..datagrams.len() {
            let Some(requested) = datagrams[index].remote_address else {
                continue;
            };
            match self.datagram_destination(requested) {
                Ok(real) => datagrams[index].remote_address = Some(real),
                // Only an error of the first datagram is returned; the service sends the rest again.
                Err(error) if index == 0 => return Err(error.into()),
                Err(_) => {
                    datagrams.truncate(index);
                    break;
                }
            }
        }
        HostOutgoingDatagramStream::send(&mut self.inner, stream, datagrams)
    }

    async fn drop(&mut self, stream: Resource<OutgoingDatagramStream>) -> wasmtime::Result<()> {
        HostOutgoingDatagramStream::drop(&mut self.inner, stream).await
    }

    pass_on! { HostOutgoingDatagramStream of OutgoingDatagramStream:
        fn check_send() -> SocketResult<u64>;
        fn subscribe() -> wasmtime::Result<Resource<DynPollable>>;
    }
}
