//! A socket of the API, and what its clients may request without a key.

use std::net::SocketAddr;

use model::compose::is_of_supervisor_network;
use serde::{Deserialize, Serialize};
use tokio::net::TcpListener;

/// What a device in local mode answers without a key, in addition to `/ping` and `/v1/healthy`, which every device
/// answers for everybody.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LocalModeAuth {
    /// `/v2/local/*` and the few reads that the command line tool makes.
    LocalEndpoints,
    /// Everything, like the reference system in this field.
    Open,
    /// Nothing more.
    #[default]
    Strict,
}

/// Which programs of the host need no key if [`LocalModeAuth`] says so. Those on other machines need none either, if
/// they reach the listener at all.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LocalModeProcesses {
    /// Those of root, of the supervisor's user and of its group, outside of containers.
    #[default]
    Trusted,
    /// All, including those in containers that share the host's network.
    Any,
}

/// What the clients of one listener may request without a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct KeylessAccess {
    /// The requests that need no key on a device in local mode.
    pub auth: LocalModeAuth,
    /// The processes of the host that need no key at its loopback addresses.
    pub processes: LocalModeProcesses,
}

/// A socket on which the API is served.
#[derive(Debug)]
pub struct Listener {
    /// The socket that accepts connections.
    pub socket: TcpListener,
    /// What it answers without a key.
    pub keyless: KeylessAccess,
}

impl KeylessAccess {
    /// Returns the remaining access for a connection between `peer` and `local`, an address of the device: services in
    /// containers need keys, whatever address they connect from.
    pub(crate) fn between(self, peer: SocketAddr, local: SocketAddr) -> Self {
        let of_services = [peer, local]
            .iter()
            .any(|address| is_of_supervisor_network(address.ip()));
        if of_services {
            KeylessAccess::default()
        } else {
            self
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_open_to_the_network_of_services_whatever_the_listener() {
        let open = KeylessAccess {
            auth: LocalModeAuth::Open,
            processes: LocalModeProcesses::Any,
        };
        for (peer, local, is_open) in [
            ("127.0.0.1:1", "127.0.0.1:2", true),
            ("192.168.1.9:1", "192.168.1.2:2", true),
            ("10.114.104.1:1", "10.114.104.1:2", false),
            ("172.17.0.2:1", "10.114.104.1:2", false),
            ("10.114.104.9:1", "192.168.1.2:2", false),
            ("[::ffff:10.114.104.9]:1", "[::ffff:192.168.1.2]:2", false),
        ] {
            let left = open.between(peer.parse().unwrap(), local.parse().unwrap());
            assert_eq!(left == open, is_open, "{peer} {local}");
        }
        assert_eq!(KeylessAccess::default().auth, LocalModeAuth::Strict);
    }
}
