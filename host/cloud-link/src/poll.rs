//! Requests the target from the cloud, periodically and when triggered (docs/spec/device.md#poll,
//! docs/spec/device.md#poll-trigger).
//!
//! Only one task does this, so there is one fetch at a time. The ETag is only in memory: the first answer after a start
//! is always complete.

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use model::{Backoff, error_chain};
use parking_lot::Mutex;
use serde_json::Value;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use crate::client::{CloudError, TargetAnswer};
use crate::retry;
use crate::target_source::Source;

/// The receiver of targets and the source of the poll's settings. The binary implements it over the reconciler.
pub trait Device: Send + Sync + 'static {
    /// Accepts a new target: checks it completely, stores it, and begins to apply it in place of the one being applied.
    /// `force` overrides update locks until it has been applied.
    fn take(&self, target: Value, force: bool) -> BoxFuture<'_, Result<(), TargetRefusal>>;

    /// Called if the cloud has no other target: changes that wait for the next update are due.
    fn unchanged(&self);

    /// Tries again to reach the known target.
    fn apply_again(&self, force: bool, cancel: bool);

    /// Called with whether the target is being requested right now.
    fn checking(&self, checks: bool);

    /// Returns the settings of the variables in force.
    fn settings(&self) -> Settings;
}

/// Why a target was not accepted; the previous one stays in force.
#[derive(Debug, thiserror::Error)]
pub enum TargetRefusal {
    /// It is not valid, and will not be at the next attempt.
    #[error("{0}")]
    Invalid(String),
    /// The device's owner does not allow it, which may change by the next attempt.
    #[error("{0}")]
    NotNow(String),
    /// It could not be stored.
    #[error("{0}")]
    Failed(String),
}

/// The poll's settings from the variables in force (docs/spec/device.md#config-variables).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settings {
    /// `SUPERVISOR_POLL_INTERVAL`.
    pub interval: Duration,
    /// `SUPERVISOR_API_REQUEST_TIMEOUT`, for each phase of a request.
    pub request_timeout: Duration,
    /// `SUPERVISOR_INSTANT_UPDATE_TRIGGER`: without it the first poll waits for one period, and only a
    /// trigger with force does anything.
    pub instant_updates: bool,
    /// `SUPERVISOR_CONNECTIVITY_CHECK`.
    pub connectivity_check: bool,
}

/// The poll of one device. Clones share it.
#[derive(Clone)]
pub struct Poll {
    shared: Arc<PollState>,
}

struct PollState {
    source: Arc<dyn Source>,
    device: Arc<dyn Device>,
    trigger: Mutex<Option<PollTrigger>>,
    wake: Notify,
    /// The time of the cloud's last answer; initially the start.
    answered: Mutex<Instant>,
}

/// The options of a trigger.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct PollTrigger {
    force: bool,
    cancel: bool,
}

impl Poll {
    /// Begins to poll once `ready` is cancelled, until `stop`. Runs in a tokio runtime.
    #[must_use]
    pub fn start(
        source: Arc<dyn Source>,
        device: Arc<dyn Device>,
        ready: CancellationToken,
        stop: CancellationToken,
    ) -> Poll {
        let shared = Arc::new(PollState {
            source,
            device,
            trigger: Mutex::default(),
            wake: Notify::new(),
            answered: Mutex::new(Instant::now()),
        });
        let running = Arc::clone(&shared);
        tokio::spawn(async move {
            let asking = async {
                ready.cancelled().await;
                running.run().await;
            };
            stop.run_until_cancelled(asking).await;
        });
        Poll { shared }
    }

    /// Polls now, or as soon as the current fetch is done; returns at once. The answer is applied with `force`, and
    /// with `cancel` in place of the target being applied, even if it is not new (docs/spec/device.md#poll-trigger).
    /// Returns whether that will be done: not if instant updates are off and `force` is not set.
    #[must_use]
    pub fn trigger(&self, force: bool, cancel: bool) -> bool {
        if !force && !self.shared.device.settings().instant_updates {
            return false;
        }
        let mut waiting = self.shared.trigger.lock();
        let before = waiting.unwrap_or_default();
        *waiting = Some(PollTrigger {
            force: force || before.force,
            cancel: cancel || before.cancel,
        });
        self.shared.wake.notify_one();
        true
    }

    /// Reports a problem if the cloud has not answered for two poll intervals (docs/spec/device.md#health).
    #[must_use]
    pub fn problem(&self) -> Option<String> {
        let silent = self.shared.answered.lock().elapsed();
        let interval = self.shared.device.settings().interval;
        (silent >= interval * 2).then(|| {
            let seconds = silent.as_secs();
            format!("the cloud has not answered a request for the target for {seconds} s")
        })
    }
}

impl PollState {
    async fn run(&self) {
        let mut etag = None;
        let mut backoff = Backoff::new(retry::BASE);
        let settings = self.device.settings();
        let mut next = Instant::now();
        if !settings.instant_updates {
            next += retry::after_success(settings.interval);
        }
        loop {
            let trigger = tokio::select! {
                () = sleep_until(next) => None,
                () = self.wake.notified() => match self.trigger.lock().take() {
                    Some(trigger) => Some(trigger),
                    None => continue,
                },
            };
            let checked = self.check(trigger, &mut etag).await;
            let interval = self.device.settings().interval;
            if let Err(error) = &checked {
                tracing::warn!(
                    "failed to get the target from the cloud: {}",
                    error_chain(error.as_ref())
                );
            }
            // The timer is independent of the result of a trigger.
            if trigger.is_none() {
                let wait = match &checked {
                    Ok(()) => {
                        backoff.reset();
                        retry::after_success(interval)
                    }
                    Err(error) => {
                        let cloud = error.downcast_ref::<CloudError>();
                        let retry_after = cloud.and_then(CloudError::retry_after);
                        retry::after_failure(&mut backoff, interval, retry_after)
                    }
                };
                tracing::debug!("the next poll is in {wait:?}");
                next = Instant::now() + wait;
            }
        }
    }

    async fn check(
        &self,
        trigger: Option<PollTrigger>,
        etag: &mut Option<String>,
    ) -> Result<(), Box<dyn Error + Send + Sync>> {
        let _checking = CheckingGuard::begin(&*self.device);
        let limit = self.device.settings().request_timeout;
        let fetched = self.source.target(etag.as_deref(), limit).await?;
        *self.answered.lock() = Instant::now();
        match fetched {
            TargetAnswer::Unchanged => {
                self.device.unchanged();
                if let Some(PollTrigger { force, cancel }) = trigger {
                    self.device.apply_again(force, cancel);
                }
            }
            TargetAnswer::New { body, etag: new } => {
                let force = trigger.is_some_and(|trigger| trigger.force);
                match self.device.take(body, force).await {
                    Ok(()) => {
                        *etag = new;
                        if trigger.is_some_and(|trigger| trigger.cancel) {
                            self.device.apply_again(force, true);
                        }
                    }
                    // Not requested again: it would be just as bad, and as long.
                    Err(TargetRefusal::Invalid(why)) => {
                        *etag = new;
                        tracing::error!(
                            "the cloud's target is not applied; the last one stays in force: {why}"
                        );
                    }
                    // Requested again with the next poll, in full.
                    Err(TargetRefusal::NotNow(why)) => {
                        tracing::error!(
                            "the cloud's target is not applied; the last one stays in force: {why}"
                        );
                    }
                    Err(failed @ TargetRefusal::Failed(_)) => return Err(failed.into()),
                }
            }
        }
        Ok(())
    }
}

/// Reports that the target is being requested, until dropped.
struct CheckingGuard<'a>(&'a dyn Device);

impl<'a> CheckingGuard<'a> {
    fn begin(device: &'a dyn Device) -> Self {
        device.checking(true);
        CheckingGuard(device)
    }
}

impl Drop for CheckingGuard<'_> {
    fn drop(&mut self) {
        self.0.checking(false);
    }
}

#[cfg(test)]
mod tests;
