//! Asks the cloud for the target: at its period, and when somebody triggers it (docs/spec/device.md#poll,
//! docs/spec/device.md#poll-trigger).
//!
//! One task asks, so there is one fetch at a time. The ETag is in memory alone: the first answer after a
//! start is always a whole one.

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use model::error_chain;
use parking_lot::Mutex;
use serde_json::Value;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use crate::client::{CloudError, TargetAnswer};
use crate::retry::{self, Backoff};

/// Where targets come from. [`crate::Client`] is the one; tests have others.
pub trait Source: Send + Sync + 'static {
    /// The target, unless it is still that of `etag`. `limit` is for each phase of the exchange.
    fn target<'a>(
        &'a self,
        etag: Option<&'a str>,
        limit: Duration,
    ) -> BoxFuture<'a, Result<TargetAnswer, CloudError>>;
}

/// What is done with targets, and what they say about asking for them. The binary implements it over the
/// reconciler.
pub trait Device: Send + Sync + 'static {
    /// Takes a new target: checks it whole, stores it, and begins to apply it in place of what is being
    /// applied. `force` overrides update locks until it has been.
    fn take(&self, target: Value, force: bool) -> BoxFuture<'_, Result<(), TargetRefusal>>;

    /// The cloud has no other target: what waits for the next update is due.
    fn unchanged(&self);

    /// Tries again to reach the target that is known.
    fn apply_again(&self, force: bool, cancel: bool);

    /// Whether the cloud is being asked right now.
    fn checking(&self, checks: bool);

    /// What the variables in force say.
    fn settings(&self) -> Settings;
}

/// Why a target was not taken; what was known before stays in force.
#[derive(Debug, thiserror::Error)]
pub enum TargetRefusal {
    /// It is not valid, and will not be at the next try.
    #[error("{0}")]
    Invalid(String),
    /// It is not what the device's owner wants, who may think otherwise by the next try.
    #[error("{0}")]
    NotNow(String),
    /// It could not be stored.
    #[error("{0}")]
    Failed(String),
}

/// What the variables in force say about asking (docs/spec/device.md#config-variables).
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
    /// When the cloud answered last; the start at first.
    answered: Mutex<Instant>,
}

/// What somebody triggered.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct PollTrigger {
    force: bool,
    cancel: bool,
}

impl Poll {
    /// Begins to ask once `ready` is cancelled, until `stop`. Runs in a tokio runtime.
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

    /// Asks the cloud now, or as soon as the fetch under way is done; returns at once. What the cloud
    /// answers is applied with `force`, and with `cancel` in place of what is being applied, also where it
    /// is not new (docs/spec/device.md#poll-trigger). Answers whether that will be done: not where instant updates
    /// are off and `force` is not given.
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

    /// What is wrong: the cloud has not answered for two poll intervals (docs/spec/device.md#health).
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
            // The timer goes its own way, whatever came of a trigger.
            if trigger.is_none() {
                let wait = match &checked {
                    Ok(()) => {
                        backoff.reset();
                        retry::after_success(interval)
                    }
                    Err(error) => {
                        let cloud = error.downcast_ref::<CloudError>();
                        backoff.next(interval, cloud.and_then(CloudError::retry_after))
                    }
                };
                tracing::debug!("asking the cloud again in {wait:?}");
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
                    // It is not asked for again: it would be no better, and as long.
                    Err(TargetRefusal::Invalid(why)) => {
                        *etag = new;
                        tracing::error!(
                            "the cloud's target is not applied; the last one stays in force: {why}"
                        );
                    }
                    // Asked for again with the next poll, whole.
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

/// Says that the cloud is being asked for as long as it is.
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
