//! Listens: accepts connections up to the limit, and ends them in an orderly way.

use std::sync::Arc;

use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::app::App;
use crate::bounds::{AFTER_FAILURE, GRACE};
use crate::connection;
use crate::listener::{KeylessAccess, Listener};
use crate::listening::{ListenSwitch, hold, reopen};
use crate::places::Places;

/// The answer to a connection above the limit.
const FULL: &[u8] =
    b"HTTP/1.1 503 Service Unavailable\r\nretry-after: 5\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";

/// Serves until the token that `app` was created with is cancelled. Then nothing more is accepted, endless streams
/// close at once, other requests get [`GRACE`], and whatever is left after that is dropped. While `listening` is
/// paused, nobody can connect.
pub async fn serve(app: App, listeners: Vec<Listener>, listening: ListenSwitch) {
    let stopping = app.stopping().clone();
    let connections = TaskTracker::new();
    let cut = CancellationToken::new();
    let accepting = TaskTracker::new();
    for listener in listeners {
        let (app, connections) = (app.clone(), connections.clone());
        let (stopping, cut) = (stopping.clone(), cut.clone());
        let listening = listening.clone();
        accepting.spawn(async move {
            tokio::select! {
                () = attend(listener, app, &connections, cut, &listening) => {}
                () = stopping.cancelled() => {}
            }
        });
    }
    accepting.close();
    accepting.wait().await;

    connections.close();
    if tokio::time::timeout(GRACE, connections.wait())
        .await
        .is_err()
    {
        tracing::warn!(
            open = connections.len(),
            "dropped the requests that were still in progress after {} s",
            GRACE.as_secs()
        );
        cut.cancel();
        connections.wait().await;
    }
}

/// Accepts connections whenever the API should listen.
async fn attend(
    listener: Listener,
    app: App,
    connections: &TaskTracker,
    cut: CancellationToken,
    listening: &ListenSwitch,
) {
    let Listener {
        mut socket,
        keyless,
    } = listener;
    let places = Arc::new(Places::new(cut));
    let address = match socket.local_addr() {
        Ok(address) => address,
        Err(error) => {
            tracing::error!(%error, "failed to read the address of a socket of the API");
            return;
        }
    };
    loop {
        let closing = app.stopping().child_token();
        tokio::select! {
            () = accept(&socket, keyless, &places, &app, connections, &closing) => {}
            () = listening.becomes(false) => {}
        }
        drop(socket);
        let reservation = hold(address);
        closing.cancel();
        tracing::info!(%address, "the API does not listen on its address any more");
        listening.becomes(true).await;
        socket = reopen(reservation, address).await;
        tracing::info!(%address, "the API listens on its address again");
    }
}

/// Accepts connections, which end with the current request once `closing` is cancelled.
async fn accept(
    socket: &TcpListener,
    keyless: KeylessAccess,
    places: &Arc<Places>,
    app: &App,
    connections: &TaskTracker,
    closing: &CancellationToken,
) {
    loop {
        match socket.accept().await {
            Ok((stream, peer)) => {
                let Some(place) = places.take(peer.ip()) else {
                    refuse(&stream);
                    continue;
                };
                let (app, closing) = (app.clone(), closing.clone());
                connections.spawn(connection::serve(app, stream, keyless, place, closing));
            }
            Err(error) => {
                tracing::warn!(%error, "failed to accept a connection");
                tokio::time::sleep(AFTER_FAILURE).await;
            }
        }
    }
}

/// Sends a refusal, if the kernel accepts it without waiting.
fn refuse(stream: &TcpStream) {
    tracing::debug!("refused a connection: too many are open");
    let _ = stream.try_write(FULL);
}
