//! The ports that a service listens on, and their real ports.
//!
//! A service with an address of its own may listen on any port, as in a container. On the host it cannot: a low port
//! needs privileges, a program that listens on all addresses holds its port on every loopback address as well, and a
//! service that held one would keep others from publishing it. So the system always chooses the real port, and this
//! table maps to it: for the service's own process, and in a file for the services that connect to it. A port that is
//! not in the table is closed: only a program that listens on all addresses of the host could answer there.

use std::path::{Path, PathBuf};

use model::Protocol;
use parking_lot::Mutex;
use wasm_service::record::{self, PORTS, PortTable};

/// The table of one service.
pub(crate) struct PortMap {
    file: PathBuf,
    bound: Mutex<PortTable>,
}

impl PortMap {
    /// Creates an empty table, stored in `folder`.
    pub(crate) fn new(folder: &Path) -> Self {
        let map = PortMap {
            file: folder.join(PORTS),
            bound: Mutex::default(),
        };
        map.save(&map.bound.lock());
        map
    }

    /// Returns the real port of `port`; `None` if the service is not bound to it.
    pub(crate) fn real(&self, protocol: Protocol, port: u16) -> Option<u16> {
        self.bound.lock().for_protocol(protocol).get(&port).copied()
    }

    /// Whether this is the real port of any port.
    pub(crate) fn is_real(&self, protocol: Protocol, real: u16) -> bool {
        self.bound
            .lock()
            .for_protocol(protocol)
            .values()
            .any(|other| *other == real)
    }

    pub(crate) fn bind(&self, protocol: Protocol, port: u16, real: u16) {
        let mut bound = self.bound.lock();
        bound.for_protocol_mut(protocol).insert(port, real);
        self.save(&bound);
    }

    pub(crate) fn release(&self, protocol: Protocol, port: u16) {
        let mut bound = self.bound.lock();
        if bound.for_protocol_mut(protocol).remove(&port).is_some() {
            self.save(&bound);
        }
    }

    /// Removes all ports: the service that was bound to them has ended.
    pub(crate) fn release_all(&self) {
        let mut bound = self.bound.lock();
        if *bound != PortTable::default() {
            *bound = PortTable::default();
            self.save(&bound);
        }
    }

    fn save(&self, bound: &PortTable) {
        if let Err(error) = record::write_volatile(&self.file, bound) {
            tracing::warn!(
                %error,
                path = %self.file.display(),
                "failed to write `{}`",
                self.file.display()
            );
        }
    }
}
