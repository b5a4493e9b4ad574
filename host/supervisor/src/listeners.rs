//! The sockets of the API, opened before anything is requested from the engines, so that a taken
//! port is found at once. Early clients wait in the socket's queue.

use std::net::{IpAddr, SocketAddr};

use anyhow::{Context, Result};
use api::{KeylessAccess, Listener};
use model::compose::SUPERVISOR_GATEWAY;
use rustix::net::sockopt;
use tokio::net::{TcpListener, TcpSocket};

use crate::listen_address::ListenAddress;

/// How many clients may wait to be accepted.
const BACKLOG: u32 = 256;

/// Opens all of them.
///
/// # Errors
/// If an address is taken or is not this host's.
pub(crate) async fn open(addresses: &[ListenAddress]) -> Result<Vec<Listener>> {
    let mut listeners = Vec::with_capacity(addresses.len());
    for ListenAddress { address, keyless } in addresses {
        let socket = TcpListener::bind(address).await.with_context(|| {
            format!("failed to listen on {address}: stop what uses it, or choose another address with --listen")
        })?;
        listeners.push(Listener {
            socket,
            keyless: *keyless,
        });
    }
    Ok(listeners)
}

/// Returns the gateway of the network that services in containers share with the API.
pub(crate) fn gateway() -> Option<IpAddr> {
    SUPERVISOR_GATEWAY.parse().ok()
}

/// Opens the address at which services in containers reach the API: the gateway of their network with the device, on
/// the port of the first address. Returns `None` if one of `addresses` covers all addresses, or if it cannot be opened,
/// which is logged: the device works without it.
///
/// The network may not exist yet, nor its address; the kernel accepts the socket anyway. Every request requires a key
/// there: the kernel lets containers of all networks reach it.
pub(crate) fn on_gateway(addresses: &[SocketAddr]) -> Option<Listener> {
    let gateway = gateway()?;
    let covered = |address: &SocketAddr| address.ip().is_unspecified() || address.ip() == gateway;
    if addresses.iter().any(covered) {
        return None;
    }
    let address = SocketAddr::new(gateway, addresses.first()?.port());
    let open = || -> std::io::Result<TcpListener> {
        let socket = TcpSocket::new_v4()?;
        socket.set_reuseaddr(true)?;
        sockopt::set_ip_freebind(&socket, true)?;
        socket.bind(address)?;
        socket.listen(BACKLOG)
    };
    open()
        .inspect_err(|error| {
            tracing::warn!(
                %error,
                %address,
                "failed to listen on {address}: services in containers do not reach the API"
            );
        })
        .ok()
        .map(|socket| Listener {
            socket,
            keyless: KeylessAccess::default(),
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_gateway_is_listened_on_before_its_network_is_there() {
        let own = ListenAddress::parse("127.0.0.1:0", api::LocalModeAuth::Open).unwrap();
        let own = open(&[own]).await.unwrap()[0].socket.local_addr().unwrap();
        let gateway = on_gateway(&[own]).expect("a listener");
        assert_eq!(gateway.keyless, KeylessAccess::default());
        let gateway = gateway.socket.local_addr().unwrap();
        assert_eq!(gateway.to_string(), format!("10.114.104.1:{}", own.port()));
        assert!(on_gateway(&["0.0.0.0:1".parse().unwrap()]).is_none());
    }

    #[tokio::test]
    async fn a_port_in_use_is_an_error_with_a_remedy() {
        let free = ListenAddress::with_keys("127.0.0.1:0".parse().unwrap());
        let listeners = open(&[free]).await.unwrap();
        let address = listeners[0].socket.local_addr().unwrap();
        let again = ListenAddress::with_keys(address);
        let error = open(&[again]).await.unwrap_err().to_string();
        assert!(error.contains(&address.to_string()), "{error}");
        assert!(error.contains("--listen"), "{error}");
    }
}
