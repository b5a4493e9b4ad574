//! Listens: takes connections, as many as fit, and ends them in good order.

use std::sync::Arc;

use tokio::net::TcpStream;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::app::App;
use crate::bounds::{AFTER_FAILURE, GRACE};
use crate::connection;
use crate::listener::Listener;
use crate::places::Places;

/// What whoever is one too many hears.
const FULL: &[u8] =
    b"HTTP/1.1 503 Service Unavailable\r\nretry-after: 5\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";

/// Serves until the token that `app` was made with is cancelled. Then nothing more is taken, endless
/// streams close at once, other requests get [`GRACE`], and what is left after that is dropped.
pub async fn serve(app: App, listeners: Vec<Listener>) {
    let stopping = app.api().stopping().clone();
    let connections = TaskTracker::new();
    let cut = CancellationToken::new();
    let accepting = TaskTracker::new();
    for listener in listeners {
        let (app, connections) = (app.clone(), connections.clone());
        let (stopping, cut) = (stopping.clone(), cut.clone());
        accepting.spawn(async move {
            tokio::select! {
                () = accept(&listener, app, &connections, &cut) => {}
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
            "requests were still under way after {} s and are dropped",
            GRACE.as_secs()
        );
        cut.cancel();
        connections.wait().await;
    }
}

async fn accept(listener: &Listener, app: App, connections: &TaskTracker, cut: &CancellationToken) {
    let places = Arc::<Places>::default();
    let keyless = listener.keyless;
    loop {
        match listener.socket.accept().await {
            Ok((stream, peer)) => {
                let Some(place) = places.take(peer.ip()) else {
                    refuse(&stream);
                    continue;
                };
                let (app, cut) = (app.clone(), cut.clone());
                connections.spawn(async move {
                    let stopping = app.api().stopping().clone();
                    tokio::select! {
                        () = connection::serve(app, stream, keyless, place, stopping) => {}
                        () = cut.cancelled() => {}
                    }
                });
            }
            Err(error) => {
                tracing::warn!(%error, "failed to take a connection");
                tokio::time::sleep(AFTER_FAILURE).await;
            }
        }
    }
}

/// Says so, where the kernel takes it without waiting.
fn refuse(stream: &TcpStream) {
    tracing::debug!("a connection too many");
    let _ = stream.try_write(FULL);
}
