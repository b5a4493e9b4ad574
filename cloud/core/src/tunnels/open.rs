//! The open tunnels, by device.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::oneshot;
use tokio_util::task::TaskTracker;
use tunnel::CloseReason;

use crate::bus::DeviceClient;

/// The longest that the end of a tunnel takes.
pub(super) const LONGEST_END: Duration = Duration::from_secs(8);

/// The open tunnels. There is one of a device at most: a newer one ends the older, which is broken or will be.
#[derive(Default)]
pub(super) struct OpenTunnels {
    open: Mutex<Map>,
    /// What carries them, up to the last word of each.
    pub(crate) carrying: TaskTracker,
}

#[derive(Default)]
struct Map {
    by_device: HashMap<i64, Tunnel>,
    opened: u64,
}

struct Tunnel {
    ask: DeviceClient,
    number: u64,
    actor: i64,
    /// The hash of the key that opened it.
    key: String,
    /// When, in milliseconds since the epoch.
    since: i64,
    /// The tunnel ends with what is sent here.
    end: oneshot::Sender<CloseReason>,
}

impl Tunnel {
    fn end(self, reason: CloseReason) {
        // An error says that it has ended by itself.
        let _ = self.end.send(reason);
    }
}

/// Who opens a tunnel.
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
    /// Says when the tunnel is to end, and with which word.
    pub until: oneshot::Receiver<CloseReason>,
}

impl OpenTunnels {
    /// A device opened a tunnel.
    pub(super) fn opened(&self, opener: &Opener, since: i64, ask: DeviceClient) -> TunnelHandle {
        let device = opener.device;
        let (end, until) = oneshot::channel();
        let mut map = self.open.lock();
        map.opened += 1;
        let number = map.opened;
        let tunnel = Tunnel {
            ask,
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

    /// A tunnel has ended. Whether it was the device's last: no other had taken its place.
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

    /// How to ask a device, where it is connected.
    pub(super) fn to(&self, device: i64) -> Option<DeviceClient> {
        self.open
            .lock()
            .by_device
            .get(&device)
            .map(|tunnel| tunnel.ask.clone())
    }

    /// Whether a device is connected.
    pub(super) fn has(&self, device: i64) -> bool {
        self.open.lock().by_device.contains_key(&device)
    }

    /// Every device that is connected.
    pub(super) fn all(&self) -> Vec<i64> {
        self.open.lock().by_device.keys().copied().collect()
    }

    /// Ends the tunnel of a device that is no more.
    pub(crate) fn end_of_removed(&self, device: i64) {
        self.end_where(CloseReason::Removed, |map| {
            map.remove(&device).into_iter().collect()
        });
    }

    /// Ends the tunnel of a device that opened a newer one elsewhere.
    pub(crate) fn end_older(&self, device: i64, than: i64) {
        self.end_where(CloseReason::Replaced, |map| {
            let older = map.get(&device).is_some_and(|tunnel| tunnel.since < than);
            let older = older.then(|| map.remove(&device)).flatten();
            older.into_iter().collect()
        });
    }

    /// The keys that tunnels were opened by.
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

    /// Ends all of them, since this replica ends.
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
