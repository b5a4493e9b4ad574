//! The connections to one listener: their number is limited, in total and per peer (see [`crate::bounds`]).
//!
//! A new connection never waits for a place, so nobody can lock out others by holding them all: to make room, the
//! oldest connection that has shown no key ends, or else the one that has been idle longest.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

use crate::bounds::{LISTENER_CONNECTIONS, PEER_CONNECTIONS};

/// The places of one listener.
#[derive(Default)]
pub(crate) struct Places {
    occupancy: Mutex<Occupancy>,
    /// Ticks with each request that ends.
    clock: AtomicU64,
    /// Cancelled when all connections must end, whatever they do.
    cut: CancellationToken,
}

#[derive(Default)]
struct Occupancy {
    /// The connections, in the order in which they were accepted.
    connections: BTreeMap<u64, Arc<ConnectionStanding>>,
    next: u64,
}

/// What counts for and against a connection when places are scarce. Requests update it without a lock: there are many
/// of them, and places are seldom scarce.
struct ConnectionStanding {
    peer: IpAddr,
    /// Whether one of its requests was admitted.
    is_admitted: AtomicBool,
    requests_under_way: AtomicUsize,
    /// When the last request ended.
    idle_since: AtomicU64,
    displaced: CancellationToken,
}

/// A place, held until it is dropped.
pub(crate) struct ConnectionSlot {
    places: Arc<Places>,
    number: u64,
    standing: Arc<ConnectionStanding>,
}

/// Held while a request is under way.
pub(crate) struct RequestGuard(Arc<ConnectionSlot>);

impl Places {
    /// Creates places whose connections all end at once when `cut` is cancelled.
    pub(crate) fn new(cut: CancellationToken) -> Self {
        Places {
            cut,
            ..Places::default()
        }
    }

    /// Returns a place for a connection of `peer`, if one is free or can be freed.
    pub(crate) fn take(self: &Arc<Self>, peer: IpAddr) -> Option<ConnectionSlot> {
        let peer = peer_of(peer);
        let mut occupancy = self.occupancy.lock();
        let of_peer = |standing: &ConnectionStanding| standing.peer == peer;
        let connections = occupancy.connections.values();
        let count = connections.filter(|standing| of_peer(standing)).count();
        if peer != HOST && count >= PEER_CONNECTIONS {
            occupancy.displace(of_peer)?;
        }
        if occupancy.connections.len() >= LISTENER_CONNECTIONS {
            occupancy.displace(|_| true)?;
        }
        let number = occupancy.next;
        occupancy.next += 1;
        let standing = Arc::new(ConnectionStanding {
            peer,
            is_admitted: AtomicBool::new(false),
            requests_under_way: AtomicUsize::new(0),
            idle_since: AtomicU64::new(0),
            displaced: self.cut.child_token(),
        });
        occupancy.connections.insert(number, standing.clone());
        Some(ConnectionSlot {
            places: self.clone(),
            number,
            standing,
        })
    }
}

impl Occupancy {
    /// Ends the most dispensable of these connections; returns `None` if there is none.
    fn displace(&mut self, among: impl Fn(&ConnectionStanding) -> bool) -> Option<()> {
        let candidates = self.connections.iter().filter(|(_, s)| among(s));
        let least = candidates
            .filter(|(_, s)| !s.is_admitted() || s.requests_under_way.load(Ordering::Relaxed) == 0)
            .min_by_key(|(number, s)| {
                let idle_since = s.idle_since.load(Ordering::Relaxed);
                (s.is_admitted(), idle_since, **number)
            })
            .map(|(number, _)| *number)?;
        let standing = self.connections.remove(&least)?;
        standing.displaced.cancel();
        Some(())
    }
}

impl ConnectionStanding {
    fn is_admitted(&self) -> bool {
        self.is_admitted.load(Ordering::Relaxed)
    }
}

impl ConnectionSlot {
    /// Completes when another connection needs the place more, or when all connections must end.
    pub(crate) async fn displaced(&self) {
        self.standing.displaced.cancelled().await;
    }

    /// Records that a request of this connection was admitted: it no longer makes room for connections that have shown
    /// no key.
    pub(crate) fn is_admitted(&self) {
        self.standing.is_admitted.store(true, Ordering::Relaxed);
    }

    /// Marks the connection as busy until the value is dropped.
    pub(crate) fn request(self: &Arc<Self>) -> RequestGuard {
        let requests = &self.standing.requests_under_way;
        requests.fetch_add(1, Ordering::Relaxed);
        RequestGuard(self.clone())
    }
}

impl Drop for RequestGuard {
    fn drop(&mut self) {
        let (places, standing) = (&self.0.places, &self.0.standing);
        let now = places.clock.fetch_add(1, Ordering::Relaxed) + 1;
        standing.idle_since.store(now, Ordering::Relaxed);
        standing.requests_under_way.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Drop for ConnectionSlot {
    fn drop(&mut self) {
        self.places
            .occupancy
            .lock()
            .connections
            .remove(&self.number);
    }
}

/// The peer that stands for the programs of the host. Services of the wasm engine connect from other loopback addresses,
/// one each, and are peers like others.
const HOST: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

/// Returns the peer for an address: the host has two, and the owner of an IPv6 network has many.
fn peer_of(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(Ipv6Addr::LOCALHOST) => HOST,
        IpAddr::V6(address) => {
            let network = address.to_bits() & !u128::from(u64::MAX);
            Ipv6Addr::from_bits(network).into()
        }
        address => address,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_displaced(place: &ConnectionSlot) -> bool {
        place.standing.displaced.is_cancelled()
    }

    #[test]
    fn one_peer_has_a_share_of_the_places_and_the_host_all() {
        let places = Arc::<Places>::default();
        let busy = |address: &str| {
            let place = Arc::new(places.take(address.parse().unwrap())?);
            place.is_admitted();
            Some(place.request())
        };
        let of_network = |number: usize| format!("2001:db8::{number}");
        let container: Vec<_> = (0..PEER_CONNECTIONS).map(|_| busy("172.17.0.2")).collect();
        assert!(container.iter().all(Option::is_some));
        assert!(busy("172.17.0.2").is_none());
        assert!(busy("::ffff:172.17.0.2").is_none());
        drop(container);
        let network: Vec<_> = (0..PEER_CONNECTIONS)
            .map(|number| busy(&of_network(number)))
            .collect();
        assert!(network.iter().all(Option::is_some));
        assert!(busy("2001:db8::ffff").is_none());
        assert!(busy("2001:db8:0:1::1").is_some());
        drop(network);
        let service: Vec<_> = (0..PEER_CONNECTIONS).map(|_| busy("127.1.2.3")).collect();
        assert!(service.iter().all(Option::is_some));
        assert!(busy("127.1.2.3").is_none());
        assert!(busy("127.1.2.4").is_some());
        drop(service);
        let host: Vec<_> = (0..LISTENER_CONNECTIONS)
            .map(|number| busy(if number % 2 == 0 { "127.0.0.1" } else { "::1" }))
            .collect();
        assert!(host.iter().all(Option::is_some));
        assert!(busy("127.0.0.1").is_none());
        assert!(busy("172.17.0.2").is_none());
    }

    #[test]
    fn clients_without_a_key_are_closed_first_and_then_the_longest_idle() {
        let places = Arc::<Places>::default();
        let take = || places.take(Ipv4Addr::LOCALHOST.into()).map(Arc::new);
        let mut held: Vec<_> = (0..LISTENER_CONNECTIONS).map(|_| take().unwrap()).collect();
        for place in &held[..LISTENER_CONNECTIONS - 2] {
            place.is_admitted();
        }
        // Requests in progress of an unknown client do not count.
        let under_way = held[LISTENER_CONNECTIONS - 2].request();
        held.push(take().unwrap());
        assert!(is_displaced(&held[LISTENER_CONNECTIONS - 2]));
        held.push(take().unwrap());
        assert!(is_displaced(&held[LISTENER_CONNECTIONS - 1]));
        drop(under_way);
        for place in &held {
            place.is_admitted();
        }
        let busy: Vec<_> = held[2..].iter().map(|place| place.request()).collect();
        drop(held[1].request());
        drop(held[0].request());
        held.push(take().unwrap());
        assert!(is_displaced(&held[1]) && !is_displaced(&held[0]));
        held.last().unwrap().is_admitted();
        let _last = held.last().unwrap().request();
        held.push(take().unwrap());
        assert!(is_displaced(&held[0]));
        held.last().unwrap().is_admitted();
        let _this = held.last().unwrap().request();
        assert!(take().is_none(), "all are at work");
        drop(busy);
        assert!(take().is_some());
    }
}
