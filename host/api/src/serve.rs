//! Listens: takes connections, as many as fit, and ends them in good order.

use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::app::App;
use crate::connection;

/// How long requests under way may still take when the API stops (device behaviour, Decisions).
pub const GRACE: Duration = Duration::from_secs(5);
/// Connections at the same time; the next client waits until one of them ends. Idle ones end by
/// themselves.
pub(crate) const MAX_CONNECTIONS: usize = if cfg!(test) { 8 } else { 512 };
/// The pause after a failure to take a connection, which is mostly a lack of file descriptors.
const AFTER_FAILURE: Duration = Duration::from_millis(100);

/// Serves until the token that `app` was made with is cancelled. Then nothing more is taken, endless
/// streams close at once, other requests get [`GRACE`], and what is left after that is dropped.
pub async fn serve(app: App, listeners: Vec<TcpListener>) {
    let stopping = app.api().stopping().clone();
    let places = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    let connections = TaskTracker::new();
    let cut = CancellationToken::new();
    let accepting = TaskTracker::new();
    for listener in listeners {
        let (app, places, connections) = (app.clone(), places.clone(), connections.clone());
        let (stopping, cut) = (stopping.clone(), cut.clone());
        accepting.spawn(async move {
            tokio::select! {
                () = accept(&listener, app, &places, &connections, &cut) => {}
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

async fn accept(
    listener: &TcpListener,
    app: App,
    places: &Arc<Semaphore>,
    connections: &TaskTracker,
    cut: &CancellationToken,
) {
    loop {
        // Closed by nobody, so there is always a place in the end.
        let Ok(place) = places.clone().acquire_owned().await else {
            return;
        };
        match listener.accept().await {
            Ok((stream, _)) => {
                let (app, cut) = (app.clone(), cut.clone());
                connections.spawn(async move {
                    let stopping = app.api().stopping().clone();
                    tokio::select! {
                        () = connection::serve(app, stream, stopping) => {}
                        () = cut.cancelled() => {}
                    }
                    drop(place);
                });
            }
            Err(error) => {
                tracing::warn!(%error, "failed to take a connection");
                tokio::time::sleep(AFTER_FAILURE).await;
            }
        }
    }
}
