//! The connection of a request, as authorization sees it: whether its client may do without a key.

use std::net::SocketAddr;
use std::sync::Arc;

use model::error_chain;
use tokio::net::TcpStream;
use tokio::sync::{OnceCell, Semaphore};

use crate::listener::{KeylessAccess, LocalModeAuth, LocalModeProcesses};
use crate::peer_process;
use crate::places::ConnectionSlot;

/// The connection of a request. Requests through the cloud's tunnel have none.
pub(crate) struct ClientConnection {
    place: Option<Arc<ConnectionSlot>>,
    auth: LocalModeAuth,
    /// Whether this client may do without a key if `auth` says so, once that is known.
    trusted: OnceCell<bool>,
    /// The peer's address and the supervisor's own, as the supervisor sees them.
    addresses: Option<(SocketAddr, SocketAddr)>,
}

impl ClientConnection {
    pub(crate) fn new(
        stream: &TcpStream,
        keyless: KeylessAccess,
        place: Arc<ConnectionSlot>,
    ) -> std::io::Result<Self> {
        let (peer, local) = (stream.peer_addr()?, stream.local_addr()?);
        let keyless = keyless.between(peer, local);
        let is_process = peer.ip().to_canonical().is_loopback();
        let must_be_trusted = is_process && keyless.processes == LocalModeProcesses::Trusted;
        Ok(ClientConnection {
            place: Some(place),
            auth: keyless.auth,
            trusted: OnceCell::new_with((!must_be_trusted).then_some(true)),
            addresses: Some((peer, local)),
        })
    }

    /// Returns a connection without addresses, for tests of the router.
    #[cfg(test)]
    pub(crate) fn without_socket(auth: LocalModeAuth, trusted: bool) -> Self {
        ClientConnection {
            place: None,
            auth,
            trusted: OnceCell::new_with(Some(trusted)),
            addresses: None,
        }
    }

    /// Records that one of its requests was admitted.
    pub(crate) fn is_admitted(&self) {
        if let Some(place) = &self.place {
            place.is_admitted();
        }
    }

    /// Returns the requests that its listener answers without a key.
    pub(crate) fn auth(&self) -> LocalModeAuth {
        self.auth
    }

    /// Returns whether this client may do without a key if [`Self::auth`] says so. Checked only once.
    pub(crate) async fn may_do_without_key(&self) -> bool {
        let look = || async {
            match self.addresses {
                Some((peer, local)) => has_trusted_process(peer, local).await,
                None => false,
            }
        };
        *self.trusted.get_or_init(look).await
    }
}

/// Only one check at a time: it goes through all processes of the host.
static LOOKS: Semaphore = Semaphore::const_new(1);

async fn has_trusted_process(peer: SocketAddr, local: SocketAddr) -> bool {
    // It is never closed.
    let Ok(_turn) = LOOKS.acquire().await else {
        return false;
    };
    let result = tokio::task::spawn_blocking(move || peer_process::is_trusted(peer, local)).await;
    match result {
        Ok(Ok(())) => true,
        Ok(Err(error)) => {
            tracing::debug!(error = error_chain(&error), %peer, "a client needs a key even in local mode");
            false
        }
        // The program is terminating.
        Err(_) => false,
    }
}
