//! Published ports: listeners on the host whose connections and datagrams are forwarded to the service.
//!
//! They are in the service's own process, so they last as long as the service, whatever happens to the supervisor, and
//! they stay open while the service is restarted.

use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use model::{PortMapping, Protocol};
use tokio::net::{TcpListener, TcpStream, UdpSocket};
use tokio::sync::Semaphore;
use tokio::sync::mpsc;
use tokio::time::timeout;

use crate::ports::PortMap;

/// The maximum connections of one published port at a time; more wait to be accepted.
const MAX_CONNECTIONS: usize = 256;
/// The maximum senders of datagrams of one published port at a time.
const MAX_SENDERS: usize = 256;
/// After this long without a datagram a sender is forgotten.
const SENDER_IDLE: Duration = Duration::from_secs(60);
/// The longest datagram, in bytes.
const MAX_DATAGRAM: usize = 64 << 10;

/// A service to forward to.
#[derive(Clone)]
pub(crate) struct Target {
    pub(crate) address: Ipv4Addr,
    pub(crate) ports: Arc<PortMap>,
}

impl Target {
    /// Returns the service's address; `None` while it does not listen there.
    pub(crate) fn at(&self, protocol: Protocol, port: u16) -> Option<SocketAddr> {
        let port = self.ports.real(protocol, port)?;
        Some(SocketAddr::new(self.address.into(), port))
    }
}

/// A bound port, not forwarded yet.
pub(crate) enum PublishedPort {
    Tcp(TcpListener, u16),
    Udp(UdpSocket, u16),
}

/// Binds a port of the host.
///
/// # Errors
/// A message that names the port and says why it cannot be bound.
pub(crate) async fn take(mapping: &PortMapping) -> Result<PublishedPort, String> {
    let port = mapping.host_port.unwrap_or(0);
    let addresses = addresses(mapping, port)?;
    let mut failure = None;
    for address in &addresses {
        let socket = match mapping.protocol {
            Protocol::Tcp => TcpListener::bind(address)
                .await
                .map(|listener| PublishedPort::Tcp(listener, mapping.container_port)),
            Protocol::Udp => UdpSocket::bind(address)
                .await
                .map(|socket| PublishedPort::Udp(socket, mapping.container_port)),
        };
        match socket {
            Ok(published) => return Ok(published),
            Err(error) => {
                // On a machine without IPv6 the next address is tried.
                let goes_on = error.kind() == io::ErrorKind::AddrNotAvailable
                    || error.raw_os_error() == Some(rustix::io::Errno::AFNOSUPPORT.raw_os_error());
                failure = Some(format!("failed to publish port {address}: {error}"));
                if !goes_on {
                    break;
                }
            }
        }
    }
    Err(failure.unwrap_or_default())
}

/// Returns the addresses to try; the first one that the machine has is used. `[::]` includes IPv4.
fn addresses(mapping: &PortMapping, port: u16) -> Result<Vec<SocketAddr>, String> {
    if mapping.host_ip.is_empty() {
        return Ok(vec![
            (Ipv6Addr::UNSPECIFIED, port).into(),
            (Ipv4Addr::UNSPECIFIED, port).into(),
        ]);
    }
    let address: IpAddr = mapping
        .host_ip
        .parse()
        .map_err(|_| format!("`{}` is not an address to publish at", mapping.host_ip))?;
    Ok(vec![(address, port).into()])
}

impl PublishedPort {
    /// Returns the address on the host.
    pub(crate) fn local_address(&self) -> io::Result<SocketAddr> {
        match self {
            PublishedPort::Tcp(listener, _) => listener.local_addr(),
            PublishedPort::Udp(socket, _) => socket.local_addr(),
        }
    }

    /// Forwards until the process ends.
    pub(crate) async fn forward(self, target: Target) {
        match self {
            PublishedPort::Tcp(listener, port) => forward_connections(listener, target, port).await,
            PublishedPort::Udp(socket, port) => forward_datagrams(socket, target, port).await,
        }
    }
}

async fn forward_connections(listener: TcpListener, target: Target, port: u16) {
    let slots = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    loop {
        let Ok(slot) = slots.clone().acquire_owned().await else {
            return;
        };
        let Ok((mut client, _)) = listener.accept().await else {
            // Usually out of descriptors: a connection has to end first.
            tokio::time::sleep(Duration::from_millis(100)).await;
            continue;
        };
        let target = target.clone();
        tokio::spawn(async move {
            if let Some(service) = target.at(Protocol::Tcp, port)
                && let Ok(mut service) = TcpStream::connect(service).await
            {
                let _ = client.set_nodelay(true);
                let _ = service.set_nodelay(true);
                // Either side's end or failure ends both.
                let _ = tokio::io::copy_bidirectional(&mut client, &mut service).await;
            }
            drop(slot);
        });
    }
}

async fn forward_datagrams(socket: UdpSocket, target: Target, port: u16) {
    let socket = Arc::new(socket);
    let (ended, mut endings) = mpsc::channel::<SocketAddr>(MAX_SENDERS);
    let mut senders: HashMap<SocketAddr, mpsc::Sender<Vec<u8>>> = HashMap::new();
    let mut buffer = vec![0; MAX_DATAGRAM];
    loop {
        let (length, client) = tokio::select! {
            received = socket.recv_from(&mut buffer) => match received {
                Ok(received) => received,
                // Here the system reports that an earlier client is gone.
                Err(_) => continue,
            },
            Some(client) = endings.recv() => {
                senders.remove(&client);
                continue;
            }
        };
        let datagram = buffer[..length].to_vec();
        let is_served = senders
            .get(&client)
            .is_some_and(|sender| !sender.is_closed());
        if !is_served {
            if senders.len() >= MAX_SENDERS {
                continue;
            }
            let (sender, datagrams) = mpsc::channel(16);
            senders.insert(client, sender);
            tokio::spawn(serve_sender(
                socket.clone(),
                client,
                datagrams,
                target.clone(),
                port,
                ended.clone(),
            ));
        }
        if let Some(sender) = senders.get(&client) {
            // Datagrams may be lost, and are dropped if the service is too slow.
            let _ = sender.try_send(datagram);
        }
    }
}

/// Forwards the datagrams of one client and returns the answers to it.
async fn serve_sender(
    socket: Arc<UdpSocket>,
    client: SocketAddr,
    mut datagrams: mpsc::Receiver<Vec<u8>>,
    target: Target,
    port: u16,
    ended: mpsc::Sender<SocketAddr>,
) {
    let serve = async {
        // From the service's own address, so that the service may answer.
        let service = UdpSocket::bind((target.address, 0)).await?;
        let mut buffer = vec![0; MAX_DATAGRAM];
        loop {
            let one = async {
                tokio::select! {
                    datagram = datagrams.recv() => {
                        let Some(datagram) = datagram else {
                            return io::Result::Ok(false);
                        };
                        if let Some(to) = target.at(Protocol::Udp, port) {
                            let _ = service.send_to(&datagram, to).await;
                        }
                    }
                    answer = service.recv_from(&mut buffer) => {
                        let (length, from) = answer?;
                        if Some(from) == target.at(Protocol::Udp, port) {
                            let _ = socket.send_to(&buffer[..length], client).await;
                        }
                    }
                }
                Ok(true)
            };
            match timeout(SENDER_IDLE, one).await {
                Ok(Ok(true)) => {}
                Ok(Ok(false)) | Ok(Err(_)) | Err(_) => return io::Result::Ok(()),
            }
        }
    };
    let _ = serve.await;
    let _ = ended.send(client).await;
}
