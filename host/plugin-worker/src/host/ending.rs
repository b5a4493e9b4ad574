//! The end of a worker's process.

use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;
use std::time::Duration;

use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::groups::ProcessGroups;
use super::host_calls::{self, Registry};
use super::process::Process;
use super::pulse::pulse;
use super::session::Session;

/// How long a process of plugins with folders may be unused before it ends.
const IDLE: Duration = Duration::from_secs(60);

/// How a process ended.
pub(super) enum End {
    /// It was stopped, and is not replaced.
    Stopped,
    /// It had nothing to do.
    Idle,
    /// It ended unexpectedly, for this reason.
    Lost(String),
}

/// Waits until the process has ended, or has to be ended; then ends it. A process that has nothing to do is removed from
/// `current` first.
pub(super) async fn until_end(
    process: Process,
    registry: Arc<Registry>,
    ends_idle: bool,
    current: &watch::Sender<Option<Arc<Session>>>,
    stopping: &CancellationToken,
) -> End {
    let Process {
        mut child,
        session,
        host_calls,
        walls: _,
        memory: _,
        groups,
    } = process;
    let pid = child.id();
    let by_kernel = || groups.as_deref().and_then(ProcessGroups::why_ended);
    let serving = host_calls::serve(session.generation, registry, host_calls);
    let end = tokio::select! {
        status = child.wait() => {
            let status = status.map_or_else(|error| error.to_string(), |status| status.to_string());
            return End::Lost(by_kernel().unwrap_or(status));
        }
        served = serving => End::Lost(match served {
            Ok(()) => "it closed its connection to the host".to_owned(),
            Err(error) => format!("it violated the protocol: {error}"),
        }),
        error = pulse(&session, pid) => End::Lost(format!("it hung: {error}")),
        () = idle(&session, current), if ends_idle => End::Idle,
        () = stopping.cancelled() => End::Stopped,
    };
    // If it ended by itself, its sockets show that first.
    match child.try_wait() {
        Ok(Some(status)) => End::Lost(by_kernel().unwrap_or_else(|| status.to_string())),
        _ => {
            let _ = child.kill().await;
            match (end, by_kernel()) {
                (End::Lost(_), Some(why)) => End::Lost(why),
                (end, _) => end,
            }
        }
    }
}

/// Waits until the process has been unused for a while, or its folders have changed, and it can no longer be used.
async fn idle(session: &Arc<Session>, current: &watch::Sender<Option<Arc<Session>>>) {
    loop {
        let is_idle = || session.open.load(SeqCst) == 0;
        tokio::select! {
            () = session.retired.notified() => {}
            () = tokio::time::sleep(IDLE) => {
                if session.used.swap(false, SeqCst) || !is_idle() {
                    continue;
                }
            }
        }
        current.send_replace(None);
        // Callers that already have it keep it until they are done.
        while !is_idle() {
            session.closed.notified().await;
        }
        return;
    }
}
