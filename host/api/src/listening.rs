//! Whether the API listens: it does not from the time a request to bring the host down is accepted until it turns out
//! that the host stays up (docs/spec/device.md#v1-power).

use std::io;
use std::net::SocketAddr;

use rustix::net::sockopt;
use tokio::net::{TcpListener, TcpSocket};
use tokio::sync::watch;

use crate::bounds::AFTER_FAILURE;

/// The number of clients that may wait to be accepted.
const BACKLOG: u32 = 256;

/// Whether the API listens, for those who control it and those who follow it.
#[derive(Debug, Clone)]
pub struct ListenSwitch(watch::Sender<usize>);

/// Keeps the API from listening until it is dropped.
#[derive(Debug)]
#[must_use = "the API listens again as soon as this is dropped"]
pub struct Pause(watch::Sender<usize>);

impl Default for ListenSwitch {
    fn default() -> Self {
        ListenSwitch(watch::Sender::new(0))
    }
}

impl ListenSwitch {
    /// Closes all listeners. Requests in progress are answered, and their connections end with the answer.
    pub fn pause(&self) -> Pause {
        self.0.send_modify(|pauses| *pauses += 1);
        Pause(self.0.clone())
    }

    /// Returns once the API should listen, or should not.
    pub(crate) async fn becomes(&self, listens: bool) {
        let mut pauses = self.0.subscribe();
        // The sender is ours, so it is never closed.
        let _ = pauses.wait_for(|pauses| (*pauses == 0) == listens).await;
    }
}

impl Drop for Pause {
    fn drop(&mut self) {
        self.0
            .send_modify(|pauses| *pauses = pauses.saturating_sub(1));
    }
}

/// Reserves the address of a listener that was closed, so that nobody else takes it meanwhile; connections are refused.
pub(crate) fn hold(address: SocketAddr) -> io::Result<TcpSocket> {
    let socket = match address {
        SocketAddr::V4(_) => TcpSocket::new_v4()?,
        SocketAddr::V6(_) => TcpSocket::new_v6()?,
    };
    socket.set_reuseaddr(true)?;
    if address.is_ipv4() {
        // The network of services may not exist, nor its gateway's address.
        sockopt::set_ip_freebind(&socket, true)?;
    }
    socket.bind(address)?;
    Ok(socket)
}

/// Listens again on an address, however long that takes.
pub(crate) async fn reopen(reservation: io::Result<TcpSocket>, address: SocketAddr) -> TcpListener {
    let mut reservation = reservation;
    loop {
        match reservation.and_then(|socket| socket.listen(BACKLOG)) {
            Ok(listener) => return listener,
            Err(error) => {
                tracing::error!(%error, %address, "failed to listen on the address again");
                tokio::time::sleep(AFTER_FAILURE).await;
                reservation = hold(address);
            }
        }
    }
}
