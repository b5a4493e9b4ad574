//! The open tunnels, by device.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::oneshot;
use tokio_util::task::TaskTracker;
use tunnel::CloseReason;

use crate::bus::DeviceClient;

/// How long ending a tunnel may take.
pub(super) const LONGEST_END: Duration = Duration::from_secs(8);

/// The open tunnels, at most one per device: a newer one ends the older, which is broken or will be.
#[derive(Default)]
pub(super) struct OpenTunnels {
    open: Mutex<Map>,
    /// The tasks that carry tunnels, up to the final message of each.
    pub(crate) carrying: TaskTracker,
}

#[derive(Default)]
struct Map {
    by_device: HashMap<i64, Tunnel>,
    opened: u64,
}

struct Tunnel {
    client: DeviceClient,
    number: u64,
    actor: i64,
    /// The hash of the key that opened it.
    key: String,
    /// When it was opened, in milliseconds since the epoch.
    since: i64,
    /// Sending a reason here ends the tunnel.
    end: oneshot::Sender<CloseReason>,
}

impl Tunnel {
    fn end(self, reason: CloseReason) {
        // An error means that it has already ended.
        let _ = self.end.send(reason);
    }
}

/// The device that opens a tunnel.
pub struct Opener {
    pub device: i64,
    pub actor: i64,
    /// The hash of its key.
    pub key: String,
}

/// One tunnel, for the task that carries it.
pub(super) struct TunnelHandle {
    device: i64,
    number: u64,
    /// Receives the signal that ends the tunnel, with the reason.
    pub until: oneshot::Receiver<CloseReason>,
}

impl OpenTunnels {
    /// Registers a tunnel that a device opened.
    pub(super) fn opened(&self, opener: &Opener, since: i64, client: DeviceClient) -> TunnelHandle {
        let device = opener.device;
        let (end, until) = oneshot::channel();
        let mut map = self.open.lock();
        map.opened += 1;
        let number = map.opened;
        let tunnel = Tunnel {
            client,
            number,
            actor: opener.actor,
            key: opener.key.clone(),
            since,
            end,
        };
        if let Some(older) = map.by_device.insert(device, tunnel) {
            older.end(CloseReason::Replaced);
        }
        TunnelHandle {
            device,
            number,
            until,
        }
    }

    /// Removes a tunnel that has ended, unless another one has taken its place.
    pub(super) fn ended(&self, handle: &TunnelHandle) {
        let mut map = self.open.lock();
        let current = map.by_device.get(&handle.device);
        if current.is_some_and(|tunnel| tunnel.number == handle.number) {
            map.by_device.remove(&handle.device);
            if map.by_device.capacity() > 4 * map.by_device.len() + 1024 {
                map.by_device.shrink_to_fit();
            }
        }
    }

    /// Returns a client for a device, if it is connected.
    pub(super) fn to(&self, device: i64) -> Option<DeviceClient> {
        self.open
            .lock()
            .by_device
            .get(&device)
            .map(|tunnel| tunnel.client.clone())
    }

    /// Whether a device is connected.
    pub(super) fn has(&self, device: i64) -> bool {
        self.open.lock().by_device.contains_key(&device)
    }

    /// Returns all connected devices.
    pub(super) fn all(&self) -> Vec<i64> {
        self.open.lock().by_device.keys().copied().collect()
    }

    /// Ends the tunnel of a deleted device.
    pub(crate) fn end_of_removed(&self, device: i64) {
        self.end_where(CloseReason::Removed, |map| {
            map.remove(&device).into_iter().collect()
        });
    }

    /// Ends the tunnel of a device that has opened a newer one elsewhere.
    pub(crate) fn end_older(&self, device: i64, than: i64) {
        self.end_where(CloseReason::Replaced, |map| {
            let older = map.get(&device).is_some_and(|tunnel| tunnel.since < than);
            let older = older.then(|| map.remove(&device)).flatten();
            older.into_iter().collect()
        });
    }

    /// Returns the keys by which tunnels were opened.
    pub(super) fn keys(&self) -> Vec<String> {
        let map = self.open.lock();
        map.by_device
            .values()
            .map(|tunnel| tunnel.key.clone())
            .collect()
    }

    /// Ends the tunnels that were opened by one of these keys.
    pub(crate) fn end_opened_by(&self, keys: &HashSet<String>) {
        self.end_where(CloseReason::KeyChanged, |map| {
            extracted(map, |tunnel| keys.contains(&tunnel.key))
        });
    }

    /// Ends the tunnels of devices with these actors.
    pub(crate) fn end_of(&self, actors: &[i64]) {
        self.end_where(CloseReason::KeyChanged, |map| {
            extracted(map, |tunnel| actors.contains(&tunnel.actor))
        });
    }

    /// Ends all tunnels, because this replica ends.
    pub(crate) fn end_all(&self) {
        self.end_where(CloseReason::GoingAway, |map| {
            map.drain().map(|(_, tunnel)| tunnel).collect()
        });
        self.carrying.close();
    }

    fn end_where(
        &self,
        reason: CloseReason,
        which: impl FnOnce(&mut HashMap<i64, Tunnel>) -> Vec<Tunnel>,
    ) {
        let ended = which(&mut self.open.lock().by_device);
        for tunnel in ended {
            tunnel.end(reason);
        }
    }
}

fn extracted(map: &mut HashMap<i64, Tunnel>, which: impl Fn(&Tunnel) -> bool) -> Vec<Tunnel> {
    let extracted = map.extract_if(|_, tunnel| which(tunnel));
    extracted.map(|(_, tunnel)| tunnel).collect()
}
