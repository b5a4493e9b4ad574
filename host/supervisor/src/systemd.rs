//! Notifications to systemd: that the supervisor is ready, that it works, that it stops. Without
//! systemd they have no effect.

use std::convert::Infallible;
use std::future::Future;
use std::time::Duration;

use sd_notify::NotifyState;

/// Reports that the API answers and the loop runs.
pub(crate) fn ready() {
    notify(NotifyState::Ready);
}

/// Reports that the supervisor stops because a signal arrived.
pub(crate) fn stopping() {
    notify(NotifyState::Stopping);
}

/// Reports twice in each of the watchdog's periods that the supervisor works, for as long as
/// `works` completes within half a period. Never returns; without a watchdog it sleeps.
pub(crate) async fn watchdog<F: Future<Output = ()>>(works: impl Fn() -> F) -> Infallible {
    let Some(period) = sd_notify::watchdog_enabled() else {
        return std::future::pending().await;
    };
    let half = (period / 2).max(Duration::from_millis(1));
    let mut due = tokio::time::interval(half);
    due.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        due.tick().await;
        match tokio::time::timeout(half, works()).await {
            Ok(()) => notify(NotifyState::Watchdog),
            Err(_) => tracing::error!("the reconcile loop is stuck: the watchdog is not notified"),
        }
    }
}

fn notify(state: NotifyState<'_>) {
    if let Err(error) = sd_notify::notify(&[state]) {
        tracing::warn!(%error, "failed to notify systemd");
    }
}
