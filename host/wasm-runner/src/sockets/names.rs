//! Names: those of services first, then the system's.

use wasmtime::component::Resource;
use wasmtime_wasi::p2::bindings::sockets::ip_name_lookup::{
    Host, HostResolveAddressStream, ResolveAddressStream,
};
use wasmtime_wasi::p2::bindings::sockets::network::{ErrorCode, IpAddress, Network};
use wasmtime_wasi::p2::{DynPollable, SocketResult};

use super::Sockets;
use crate::rules::Resolution;

impl Host for Sockets<'_> {
    fn resolve_addresses(
        &mut self,
        network: Resource<Network>,
        name: String,
    ) -> SocketResult<Resource<ResolveAddressStream>> {
        let name = match self.rules().resolve(&name) {
            // The resolver takes an address for itself, without asking anybody.
            Resolution::Address(address) => address.to_string(),
            Resolution::AskSystem => name,
            Resolution::Unknown => return Err(ErrorCode::NameUnresolvable.into()),
        };
        Host::resolve_addresses(&mut self.inner, network, name)
    }
}

impl HostResolveAddressStream for Sockets<'_> {
    fn resolve_next_address(
        &mut self,
        stream: Resource<ResolveAddressStream>,
    ) -> SocketResult<Option<IpAddress>> {
        HostResolveAddressStream::resolve_next_address(&mut self.inner, stream)
    }

    fn subscribe(
        &mut self,
        stream: Resource<ResolveAddressStream>,
    ) -> wasmtime::Result<Resource<DynPollable>> {
        HostResolveAddressStream::subscribe(&mut self.inner, stream)
    }

    fn drop(&mut self, stream: Resource<ResolveAddressStream>) -> wasmtime::Result<()> {
        HostResolveAddressStream::drop(&mut self.inner, stream)
    }
}
