//! The handle that the API and the binary hold.

mod keys;
mod locking;
mod services;
mod start;
mod targets;

use std::sync::Arc;

use device_types::{DevicePlan, ReconcilerStats};
use model::compose::DeviceFacts;
use model::contracts::DeviceProperties;
use model::{ActionError, DeviceStatus};
use tokio::sync::mpsc::UnboundedSender;
use tokio::sync::oneshot::error::RecvError;
use tokio::sync::{oneshot, watch};
use tokio_util::sync::CancellationToken;

use crate::SigningState;
use crate::host::EffectiveSettings;
use crate::logs::{LogHub, LogSubscription};
use crate::messages::{Command, Message};
use crate::persistence::LocalMode;
use crate::signing::TargetJudge;
use crate::step_context::StepContext;
use crate::targets::Targets;
pub use start::StartError;

/// The reconciler of one device. Cheap to clone; it stops with [`Reconciler::shutdown`].
#[derive(Clone)]
pub struct Reconciler {
    inner: Arc<SharedReconciler>,
}

struct SharedReconciler {
    context: Arc<StepContext>,
    facts: Arc<dyn Fn() -> DeviceFacts + Send + Sync>,
    /// The device's name until a target names it.
    unnamed: String,
    offers: DeviceProperties,
    judge: Arc<TargetJudge>,
    /// Whether the device has a cloud.
    managed: bool,
    status: watch::Receiver<Arc<DeviceStatus>>,
    messages: UnboundedSender<Message>,
    stop: CancellationToken,
    ended: CancellationToken,
    stored_target_is_unreadable: bool,
}

impl Reconciler {
    /// Returns the device's state as last published.
    #[must_use]
    pub fn status(&self) -> Arc<DeviceStatus> {
        self.inner.status.borrow().clone()
    }

    /// Returns a receiver for changes of the state.
    #[must_use]
    pub fn watch(&self) -> watch::Receiver<Arc<DeviceStatus>> {
        self.inner.status.clone()
    }

    /// Returns what is about to happen and what delays it. Changes nothing.
    ///
    /// # Errors
    /// If the supervisor is stopping.
    pub async fn plan(&self) -> Result<DevicePlan, String> {
        let stopping = || stopping().to_string();
        let snapshot = self.ask(Command::Snapshot).await.map_err(|_| stopping())?;
        let cloud_apps = self.apps_of_the_cloud();
        let signing = self.signing().borrow().clone();
        let plan = self
            .inner
            .context
            .locks
            .blocking(move |locks| snapshot.device_plan(locks, &cloud_apps, &signing));
        plan.await.ok_or_else(stopping)
    }

    /// Returns the counters since the start.
    #[must_use]
    pub fn stats(&self) -> ReconcilerStats {
        let context = &self.inner.context;
        let count = |number| u64::try_from(number).unwrap_or(u64::MAX);
        ReconcilerStats {
            downloads_running: count(context.telemetry.progress.all().len()),
            locks_held: count(context.locks.held()),
            ..context.telemetry.counters.read()
        }
    }

    /// Returns a receiver for the typed settings from the variables in force.
    #[must_use]
    pub fn effective_settings(&self) -> watch::Receiver<Arc<EffectiveSettings>> {
        self.inner.context.channels.effective_settings.subscribe()
    }

    /// Returns a receiver for the signing state: whether targets must be signed, and the outcome of the cloud's last
    /// one.
    #[must_use]
    pub fn signing(&self) -> watch::Receiver<Arc<SigningState>> {
        self.inner.context.channels.signing.subscribe()
    }

    /// Sets whether the cloud is being polled for a new target right now: if so, the status says that an update is
    /// pending (docs/spec/device.md#v1-device).
    pub fn set_checking(&self, checking: bool) {
        self.command(Command::Checking(checking));
    }

    /// Observes the engines, and retries at once whatever waits for a retry. `force` overrides update locks until the
    /// target is reached; `cancel` aborts pulls, and starts those that are still needed again.
    pub fn trigger(&self, force: bool, cancel: bool) {
        self.command(Command::Trigger { force, cancel });
    }

    /// Begins the changes that wait for the next update: services get their current API keys.
    pub fn begin_update(&self) {
        self.command(Command::BeginUpdate);
    }

    /// Returns once the loop has processed all messages so far; never, once it has ended. The loop never waits for an
    /// engine, so if it does not answer soon, it is stuck.
    pub async fn answers(&self) {
        let _ = self.ask(Command::Answer).await;
        if self.inner.ended.is_cancelled() {
            std::future::pending().await
        }
    }

    /// Returns a new reader of the output of services and the actions of the supervisor, from now on.
    #[must_use]
    pub fn logs(&self) -> LogSubscription {
        self.hub().subscribe()
    }

    /// Like [`Reconciler::logs`], for the cloud: it also receives lines outside local mode, where other readers receive
    /// none.
    #[must_use]
    pub fn logs_for_the_cloud(&self) -> LogSubscription {
        self.hub().subscribe_for_the_cloud()
    }

    /// Forgets the cloud's log positions: it needs nothing of the output so far.
    pub fn forget_logs_for_the_cloud(&self) {
        self.hub().forget_for_the_cloud();
    }

    /// Returns the problems that keep the device from working, one sentence each.
    #[must_use]
    pub fn problems(&self) -> Vec<String> {
        let mut problems = Vec::new();
        if self.inner.ended.is_cancelled() {
            problems.push("the reconciler has ended".to_owned());
        }
        let has_target = |targets: &Targets| match targets.mode {
            LocalMode::On => targets.local.is_some(),
            LocalMode::Leaving | LocalMode::Off => targets.cloud.is_some(),
        };
        if self.inner.stored_target_is_unreadable && !has_target(&self.targets().borrow()) {
            problems.push("the stored target state cannot be read".to_owned());
        }
        problems.extend(self.inner.context.telemetry.health.problems());
        problems
    }

    /// Ends the loop, once steps that disturb a service have ended or after 3 s. Services keep running.
    pub async fn shutdown(&self) {
        self.inner.stop.cancel();
        self.inner.ended.cancelled().await;
        let reconciler = self.clone();
        let keeping = move || {
            let store = reconciler.inner.context.persistence.store();
            reconciler.hub().keep_positions(store);
        };
        let _ = tokio::task::spawn_blocking(keeping).await;
    }

    fn hub(&self) -> &LogHub {
        &self.inner.context.telemetry.hub
    }

    /// Returns the targets of all sources, and the state of local mode.
    fn targets(&self) -> &watch::Sender<Targets> {
        &self.inner.context.channels.targets
    }

    /// Sends the loop a command and waits for its answer; there is none once the loop has ended.
    async fn ask<T>(
        &self,
        command: impl FnOnce(oneshot::Sender<T>) -> Command,
    ) -> Result<T, RecvError> {
        let (reply, answer) = oneshot::channel();
        self.command(command(reply));
        answer.await
    }

    fn command(&self, command: Command) {
        // A loop that has ended accepts no commands; `problems` says so.
        let _ = self.inner.messages.send(Message::Command(command));
    }
}

fn stopping() -> ActionError {
    ActionError::Failed(
        "the supervisor is stopping; what was begun is finished after its next start".into(),
    )
}
