//! The open tunnels, by device.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use axum::body::Bytes;
use http_body_util::Full;
use tokio::sync::oneshot;

/// Sends requests to one device.
pub(crate) type Ask = tunnel::Ask<Full<Bytes>>;

/// The open tunnels. There is one of a device at most: a newer one ends the older, which is broken or will be.
#[derive(Default)]
pub(crate) struct Tunnels {
    open: Mutex<Map>,
}

#[derive(Default)]
struct Map {
    by_device: HashMap<i64, Tunnel>,
    opened: u64,
}

struct Tunnel {
    ask: Ask,
    number: u64,
    actor: i64,
    /// The tunnel ends when this is dropped.
    _held: oneshot::Sender<()>,
}

/// One tunnel, for the task that carries it.
pub(crate) struct Held {
    device: i64,
    number: u64,
    /// Ends when the tunnel is to end.
    pub(crate) until: oneshot::Receiver<()>,
}

impl Tunnels {
    fn map(&self) -> MutexGuard<'_, Map> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A device (whose actor this is) opened a tunnel.
    pub(crate) fn opened(&self, device: i64, actor: i64, ask: Ask) -> Held {
        let (held, until) = oneshot::channel();
        let mut map = self.map();
        map.opened += 1;
        let number = map.opened;
        let tunnel = Tunnel {
            ask,
            number,
            actor,
            _held: held,
        };
        map.by_device.insert(device, tunnel);
        Held {
            device,
            number,
            until,
        }
    }

    /// A tunnel has ended. Whether it was the device's last: no other had taken its place.
    pub(crate) fn ended(&self, held: &Held) {
        let mut map = self.map();
        let current = map.by_device.get(&held.device);
        if current.is_some_and(|tunnel| tunnel.number == held.number) {
            map.by_device.remove(&held.device);
            if map.by_device.capacity() > 4 * map.by_device.len() + 1024 {
                map.by_device.shrink_to_fit();
            }
        }
    }

    /// How to ask a device, where it is connected.
    pub(crate) fn to(&self, device: i64) -> Option<Ask> {
        self.map()
            .by_device
            .get(&device)
            .map(|tunnel| tunnel.ask.clone())
    }

    /// Whether a device is connected.
    pub(crate) fn has(&self, device: i64) -> bool {
        self.map().by_device.contains_key(&device)
    }

    /// Every device that is connected.
    pub(crate) fn all(&self) -> Vec<i64> {
        self.map().by_device.keys().copied().collect()
    }

    /// Ends the tunnel of a device.
    pub(crate) fn close(&self, device: i64) {
        self.map().by_device.remove(&device);
    }

    /// Ends the tunnels of devices with these actors.
    pub(crate) fn close_of(&self, actors: &[i64]) {
        let mut map = self.map();
        map.by_device
            .retain(|_, tunnel| !actors.contains(&tunnel.actor));
    }

    /// Ends all of them.
    pub(crate) fn close_all(&self) {
        self.map().by_device.clear();
    }
}
