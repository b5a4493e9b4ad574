//! The handle that the API and the binary hold.

mod keys;
mod locking;
mod services;
mod start;
mod targets;

use std::sync::Arc;

use device_types::{DevicePlan, ReconcilerStats};
use model::compose::DeviceFacts;
use model::contracts::Offers;
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
    inner: Arc<Inner>,
}

struct Inner {
    context: Arc<StepContext>,
    facts: Arc<dyn Fn() -> DeviceFacts + Send + Sync>,
    /// The device's name before a target names it.
    unnamed: String,
    offers: Offers,
    judge: Arc<TargetJudge>,
    /// The device has a cloud.
    managed: bool,
    status: watch::Receiver<Arc<DeviceStatus>>,
    messages: UnboundedSender<Message>,
    stop: CancellationToken,
    ended: CancellationToken,
    stored_target_is_unreadable: bool,
}

impl Reconciler {
    /// The device's state as last published.
    #[must_use]
    pub fn status(&self) -> Arc<DeviceStatus> {
        self.inner.status.borrow().clone()
    }

    /// Told of each change of the state.
    #[must_use]
    pub fn watch(&self) -> watch::Receiver<Arc<DeviceStatus>> {
        self.inner.status.clone()
    }

    /// What is about to happen, and what holds it up. Changes nothing.
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

    /// What has been counted since the start.
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

    /// What the variables in force say, typed, and told of each change.
    #[must_use]
    pub fn effective_settings(&self) -> watch::Receiver<Arc<EffectiveSettings>> {
        self.inner.context.channels.effective_settings.subscribe()
    }

    /// Whether targets have to be signed, what became of the cloud's last one, and each change of that.
    #[must_use]
    pub fn signing(&self) -> watch::Receiver<Arc<SigningState>> {
        self.inner.context.channels.signing.subscribe()
    }

    /// Tells the status whether somebody is asking right now what there is to do: an update is pending
    /// then (docs/spec/device.md#v1-device).
    pub fn set_checking(&self, checking: bool) {
        self.command(Command::Checking(checking));
    }

    /// Looks at the engines, and tries at once what waits to be tried again. `force` overrides update
    /// locks until the target is reached; `cancel` breaks pulls off, to begin anew those still wanted.
    pub fn trigger(&self, force: bool, cancel: bool) {
        self.command(Command::Trigger { force, cancel });
    }

    /// Begins what waits for the next update: services get the keys to the API that they have by now.
    pub fn begin_update(&self) {
        self.command(Command::BeginUpdate);
    }

    /// Returns once the loop has taken what it was told so far; never, once it has ended. It never waits
    /// for an engine, so one that does not answer soon stands still.
    pub async fn answers(&self) {
        let _ = self.ask(Command::Answer).await;
        if self.inner.ended.is_cancelled() {
            std::future::pending().await
        }
    }

    /// A new reader of what services print and what the supervisor does, from now on.
    #[must_use]
    pub fn logs(&self) -> LogSubscription {
        self.hub().subscribe()
    }

    /// As [`Reconciler::logs`], for the cloud: also outside local mode, where nobody else hears anything.
    #[must_use]
    pub fn logs_for_the_cloud(&self) -> LogSubscription {
        self.hub().subscribe_for_the_cloud()
    }

    /// The cloud wants nothing of what services have printed so far.
    pub fn forget_logs_for_the_cloud(&self) {
        self.hub().forget_for_the_cloud();
    }

    /// What keeps the device from working, one sentence each.
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

    /// Ends the loop, after steps that disturb a service have ended or 3 s have gone by. Services are
    /// left running.
    pub async fn shutdown(&self) {
        self.inner.stop.cancel();
        self.inner.ended.cancelled().await;
        let reconciler = self.clone();
        let keeping = move || {
            let store = reconciler.inner.context.journal.store();
            reconciler.hub().keep_positions(store);
        };
        let _ = tokio::task::spawn_blocking(keeping).await;
    }

    fn hub(&self) -> &LogHub {
        &self.inner.context.telemetry.hub
    }

    /// The targets of all sources, and where local mode stands.
    fn targets(&self) -> &watch::Sender<Targets> {
        &self.inner.context.channels.targets
    }

    /// Sends the loop a command and waits for what it answers with; there is no answer once it has ended.
    async fn ask<T>(
        &self,
        command: impl FnOnce(oneshot::Sender<T>) -> Command,
    ) -> Result<T, RecvError> {
        let (reply, answer) = oneshot::channel();
        self.command(command(reply));
        answer.await
    }

    fn command(&self, command: Command) {
        // A loop that has ended takes no commands; `problems` says so.
        let _ = self.inner.messages.send(Message::Command(command));
    }
}

fn stopping() -> ActionError {
    ActionError::Failed(
        "the supervisor is stopping; what was begun is finished after its next start".into(),
    )
}
