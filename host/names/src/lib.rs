//! Looks up addresses of names with the system's resolver, on threads that do nothing else.
//!
//! [`SystemNames`] is used by everything that connects to a host by name: the clients of the cloud, of image registries
//! and of an engine over TCP. `getaddrinfo` waits for name servers as long as the C library decides, and cannot be
//! interrupted. On the runtime's threads for blocking work, a silent name server blocked files, locks and the store;
//! here it blocks only names.
//!
//! It uses the system's resolver and not a DNS client of our own, since a device's names can also come from
//! `/etc/hosts`, from mDNS (`.local`) or from other sources in `nsswitch.conf`. Nothing is cached here: that is the
//! system's task.

mod bounds;
mod lookup;

use std::io;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs as _};
use std::sync::OnceLock;

use futures::FutureExt as _;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use tokio::net::TcpStream;

pub use lookup::{LookupError, SystemNames};

/// Returns the resolver of this process.
#[must_use]
pub fn system() -> SystemNames {
    static SYSTEM: OnceLock<SystemNames> = OnceLock::new();
    let ask = |host: &str| (host, 0).to_socket_addrs().map(Iterator::collect);
    SYSTEM.get_or_init(|| SystemNames::new(ask)).clone()
}

/// Connects like `TcpStream::connect`, with the addresses of [`SystemNames`].
///
/// # Errors
/// If the name has no address, or none of its addresses accepts the connection.
pub async fn connect(host: &str, port: u16) -> io::Result<TcpStream> {
    let mut addresses = system().addresses(host).await.map_err(io::Error::other)?;
    for address in &mut addresses {
        address.set_port(port);
    }
    TcpStream::connect(addresses.as_slice()).await
}

/// Parses `host` as an address, if it is not a name. An address of version 6 may have brackets, as in a URL.
fn literal(host: &str) -> Option<IpAddr> {
    let inner = host
        .strip_prefix('[')
        .and_then(|host| host.strip_suffix(']'));
    inner.unwrap_or(host).parse().ok()
}

impl Resolve for SystemNames {
    fn resolve(&self, name: Name) -> Resolving {
        let names = self.clone();
        async move {
            let addresses = names.addresses(name.as_str()).await?;
            let addresses: Addrs = Box::new(addresses.into_iter());
            Ok(addresses)
        }
        .boxed()
    }
}

impl SystemNames {
    /// Returns the addresses of `host`, in the order in which they should be tried, with port 0. If `host` is an
    /// address, that address is returned.
    ///
    /// # Errors
    /// [`LookupError`].
    pub async fn addresses(&self, host: &str) -> Result<Vec<SocketAddr>, LookupError> {
        match literal(host) {
            Some(address) => Ok(vec![SocketAddr::new(address, 0)]),
            None => self.look_up(host).await,
        }
    }
}

#[cfg(test)]
mod tests;
