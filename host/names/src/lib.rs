//! Addresses of names, by the system's resolver, on threads that do nothing else.
//!
//! [`SystemNames`] is asked by whatever connects to a host by its name: the clients of the cloud, of image registries
//! and of an engine over TCP. `getaddrinfo` waits for name servers as long as the C library likes, and nothing can
//! cut it short. On the runtime's threads for blocking work a silent name server held up files, locks and the store;
//! here it holds up names and nothing else.
//!
//! It is the system's resolver and no client of DNS of our own, since a device's names also stand in `/etc/hosts`, come
//! by mDNS (`.local`) or by whatever `nsswitch.conf` says. Nothing is remembered here: that is for the system to do.

mod bounds;
mod lookup;

use std::io;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs as _};
use std::sync::OnceLock;

use futures::FutureExt as _;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use tokio::net::TcpStream;

pub use lookup::{LookupError, SystemNames};

/// The one of this process.
#[must_use]
pub fn system() -> SystemNames {
    static SYSTEM: OnceLock<SystemNames> = OnceLock::new();
    let ask = |host: &str| (host, 0).to_socket_addrs().map(Iterator::collect);
    SYSTEM.get_or_init(|| SystemNames::new(ask)).clone()
}

/// As `TcpStream::connect` does, with the addresses of [`SystemNames`].
///
/// # Errors
/// Where the name has no address, and where none of them takes the connection.
pub async fn connect(host: &str, port: u16) -> io::Result<TcpStream> {
    let mut addresses = system().addresses(host).await.map_err(io::Error::other)?;
    for address in &mut addresses {
        address.set_port(port);
    }
    TcpStream::connect(addresses.as_slice()).await
}

/// The address that `host` is, where it is no name. Of an address of version 6 the brackets are a URL's.
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
    /// The addresses of `host`, in the order in which they are to be tried, with port 0. An address that is written
    /// out is its own.
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
