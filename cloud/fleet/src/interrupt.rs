//! Interruption of the program while it is working.

use tokio::signal::unix::{SignalKind, signal};

use crate::failure::Failure;

/// Waits for Ctrl-C, or a request by the system to terminate.
pub(crate) async fn wait_for_interrupt() -> Failure {
    let stopped = Failure::failed("interrupted");
    let (Ok(mut interrupt), Ok(mut end)) = (
        signal(SignalKind::interrupt()),
        signal(SignalKind::terminate()),
    ) else {
        return std::future::pending().await;
    };
    tokio::select! {
        _ = interrupt.recv() => stopped.interrupted(),
        _ = end.recv() => stopped.interrupted(),
    }
}
