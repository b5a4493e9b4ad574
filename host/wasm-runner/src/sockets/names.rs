//! Names: those of services first, then the system's.

use wasmtime::component::Resource;
use wasmtime_wasi::p2::bindings::sockets::ip_name_lookup::{
    Host, HostResolveAddressStream, ResolveAddressStream,
};
use wasmtime_wasi::p2::bindings::sockets::network::{ErrorCode, IpAddress, Network};
use wasmtime_wasi::p2::{DynPollable, SocketResult};

use super::{Sockets, pass_on};
use crate::rules::Resolution;

impl Host for Sockets<'_> {
    fn resolve_addresses(
        &mut self,
        network: Resource<Network>,
        name: String,
    ) -> SocketResult<Resource<ResolveAddressStream>> {
        let name = match self.rules().resolve(&name) {
            // The resolver returns a literal address unchanged, without asking anybody.
            Resolution::Address(address) => address.to_string(),
            Resolution::AskSystem => name,
            Resolution::Unknown => return Err(ErrorCode::NameUnresolvable.into()),
        };
        Host::resolve_addresses(&mut self.inner, network, name)
    }
}

impl HostResolveAddressStream for Sockets<'_> {
    pass_on! { HostResolveAddressStream of ResolveAddressStream:
        fn resolve_next_address() -> SocketResult<Option<IpAddress>>;
        fn subscribe() -> wasmtime::Result<Resource<DynPollable>>;
        fn drop() -> wasmtime::Result<()>;
    }
}
