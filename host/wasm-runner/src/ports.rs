//! The ports that a service listens on, and what they really are.
//!
//! A service with an address of its own may listen on any port, as in a container. On the host it may
//! not: a low port needs privileges, a program that listens on all addresses holds its port on every
//! loopback address as well, and a service that held one would keep others from publishing it. So the
//! system chooses the real port, always, and this table says it: to the service's own process, and in
//! a file to the services that connect to it. A port that is not in the table is closed: behind it
//! there could only be somebody who listens on all addresses of the host.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use model::Protocol;
use wasm_service::record::{self, PORTS, PortTable};

/// The table of one service.
pub(crate) struct PortMap {
    file: PathBuf,
    /// From the port that was asked for to the real one.
    bound: Mutex<HashMap<(Protocol, u16), u16>>,
}

impl PortMap {
    /// An empty table, kept in `folder`.
    pub(crate) fn new(folder: &Path) -> Self {
        let map = PortMap {
            file: folder.join(PORTS),
            bound: Mutex::default(),
        };
        map.save(&map.lock());
        map
    }

    /// What `port` really is; `None` where the service is not bound to it.
    pub(crate) fn real(&self, protocol: Protocol, port: u16) -> Option<u16> {
        self.lock().get(&(protocol, port)).copied()
    }

    /// Whether some port is really this one.
    pub(crate) fn is_real(&self, protocol: Protocol, real: u16) -> bool {
        let bound = self.lock();
        let mut of_protocol = bound.iter().filter(|((p, _), _)| *p == protocol);
        of_protocol.any(|(_, other)| *other == real)
    }

    pub(crate) fn bind(&self, protocol: Protocol, port: u16, real: u16) {
        let mut bound = self.lock();
        bound.insert((protocol, port), real);
        self.save(&bound);
    }

    pub(crate) fn release(&self, protocol: Protocol, port: u16) {
        let mut bound = self.lock();
        if bound.remove(&(protocol, port)).is_some() {
            self.save(&bound);
        }
    }

    /// Forgets all ports: the service that was bound to them is gone.
    pub(crate) fn release_all(&self) {
        let mut bound = self.lock();
        if !bound.is_empty() {
            bound.clear();
            self.save(&bound);
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<(Protocol, u16), u16>> {
        self.bound.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn save(&self, bound: &HashMap<(Protocol, u16), u16>) {
        let of = |protocol: Protocol| -> BTreeMap<u16, u16> {
            let of_protocol = bound.iter().filter(|((p, _), _)| *p == protocol);
            of_protocol
                .map(|((_, port), real)| (*port, *real))
                .collect()
        };
        let table = PortTable {
            tcp: of(Protocol::Tcp),
            udp: of(Protocol::Udp),
        };
        if let Err(error) = record::write_volatile(&self.file, &table) {
            tracing::warn!(%error, "failed to write `{}`", self.file.display());
        }
    }
}
