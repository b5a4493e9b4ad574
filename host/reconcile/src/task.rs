//! The loop: observe, plan, apply, publish. One task owns everything here; it waits only for something to happen.

mod actions;
mod held_locks;
mod host;
mod host_view;
mod keys;
mod local;
mod local_mode_state;
mod lock_wait;
mod loop_snapshot;
mod observe;
mod on_command;
mod on_message;
mod os_activation;
mod os_trial;
mod os_update;
mod os_view;
mod publication;
mod quiesce;
mod quiesce_state;
mod release_trials;
mod restore;
mod retries;
mod start;
mod steps_in_flight;
mod target_in_force;

mod events;

use std::sync::Arc;
use std::time::Duration;

use model::{ContainerState, DesiredNetwork, DeviceStatus};
use plan::{CurrentState, Step, Subject, plan};
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::sync::{Notify, watch};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::actions::Actions;
use crate::config::Limits;
use crate::events::EngineEvents;
use crate::messages::{ActiveTarget, Message, StoredRecord};
use crate::persistence::{LocalMode, RecoveredState};
use crate::release_trials::ReleaseTrials;
use crate::step_context::{StepContext, publish};
use crate::step_span;
use crate::stored_state::StoredState;
use crate::view::View;
use crate::{EffectiveSettings, Exposure, OsAction};
use held_locks::HeldLocks;
use host_view::HostView;
use local_mode_state::LocalModeState;
use publication::Publication;
use retries::Retries;
use steps_in_flight::StepsInFlight;
use target_in_force::TargetInForce;

/// The initial state of the loop.
pub(crate) struct StartState {
    pub memory: RecoveredState,
    /// `None` if no target was ever set, or it cannot be read: then nothing is touched.
    pub target: Option<ActiveTarget>,
    /// The target after local mode, if that is being left.
    pub resumes: Option<ActiveTarget>,
    pub api_network: DesiredNetwork,
    pub managed: bool,
}

pub(crate) struct ReconcilerTask {
    context: Arc<StepContext>,
    target: TargetInForce,
    view: View,
    local_mode: LocalModeState,
    stored: StoredState,
    actions: Actions,
    host: HostView,
    held_locks: HeldLocks,
    in_flight: StepsInFlight,
    retries: Retries,
    /// Notified if another pass is due although nothing has happened.
    again: Arc<Notify>,
    publication: Publication,
}

impl ReconcilerTask {
    pub(crate) fn new(
        context: Arc<StepContext>,
        limits: &Limits,
        start: StartState,
        publish: watch::Sender<Arc<DeviceStatus>>,
    ) -> Self {
        let memory = start.memory;
        let mut actions = Actions::default();
        for (app, stored) in memory.actions {
            actions.resume(app, stored);
        }
        let boot = context.host.boot();
        let target = start.target.as_ref().and_then(|it| it.target.clone());
        let mut trials = ReleaseTrials::new(memory.releases);
        let mut first_target = start.target;
        if let Some(target) = &mut first_target
            && memory.local_mode == LocalMode::Off
        {
            trials.substitute(&mut target.desired, &context.branding.secret_variables());
        }
        let engines = context.engines.all().map(|engine| engine.kind());
        let task = ReconcilerTask {
            view: View::new(engines, context.branding.clone()),
            context,
            target: TargetInForce::new(first_target, start.resumes, start.api_network, trials),
            local_mode: LocalModeState::new(memory.local_mode, memory.snapshot, start.managed),
            stored: memory.stored,
            actions,
            host: HostView::new(target, boot, memory.reboots, memory.os),
            held_locks: HeldLocks::default(),
            in_flight: StepsInFlight::default(),
            retries: Retries::new(limits),
            again: Arc::default(),
            publication: Publication::new(publish),
        };
        task.publish_settings();
        task
    }

    /// Publishes the settings of the target in force to the other parts of the supervisor.
    fn publish_settings(&self) {
        let settings = EffectiveSettings {
            settings: self.target.settings.clone(),
            variables: self.host.variables(),
            exposure: Exposure::from_desired(self.target.desired(), self.local_mode.is_on()),
        };
        publish(&self.context.channels.effective_settings, settings);
    }

    /// Runs until `stop`. Services keep running; a step that disturbs one has `patience` to end.
    pub(crate) async fn run(
        mut self,
        mut messages: UnboundedReceiver<Message>,
        announced: Arc<EngineEvents>,
        stop: CancellationToken,
        patience: Duration,
    ) {
        let progress = Arc::clone(&self.context.telemetry.progress);
        let again = Arc::clone(&self.again);
        let local_mode = self.local_mode.is_on();
        self.publication.begin(local_mode, |audience, event| {
            self.context.telemetry.send_event(audience, event)
        });
        loop {
            self.keep_snapshot().await;
            self.observe();
            self.context.telemetry.counters.pass();
            let applying = self.decide();
            self.publish(applying);
            let wake = self.next_try();
            let wake_at = wake.unwrap_or_else(Instant::now);
            tokio::select! {
                message = messages.recv() => {
                    let Some(message) = message else { return };
                    self.on_message(message);
                    // Everything that has happened by now is part of the same pass.
                    while let Ok(message) = messages.try_recv() {
                        self.on_message(message);
                    }
                }
                announced = announced.next() => self.announce(announced),
                () = progress.changed.notified() => {}
                () = again.notified() => {}
                () = tokio::time::sleep_until(wake_at), if wake.is_some() => self.retry_silent(),
                () = stop.cancelled() => break,
            }
        }
        self.end(messages, patience).await;
    }

    /// Makes a plan and starts its steps; returns whether there is anything left to do.
    fn decide(&mut self) -> bool {
        if self.local_mode.is_leaving() {
            self.end_all_actions("the device is leaving local mode");
            self.leave_local_mode();
            return true;
        }
        if self.target.desired().is_some() && !self.view.is_known() {
            return true;
        }
        if self.host.quiesce.is_some() && self.quiesce() {
            return true;
        }
        self.begin_actions();
        self.look_at_releases();
        self.judge_os();
        let current = self.current();
        let Some(desired) = self.effective_target() else {
            self.publication.set_blockers(Vec::new());
            return false;
        };
        let plan = plan(&current, &desired);
        let waits = !plan.waiting_on.is_empty();
        // Services do not wait for an operating system that is being staged or on trial.
        let mut applies = plan.waiting_on.iter().any(|it| it.subject != Subject::Os);
        applies |= current.busy.iter().any(|subject| *subject != Subject::Os);
        self.publication.set_blockers(plan.waiting_on);
        let mut acts = false;
        for step in plan.steps {
            let span = step_span::for_step(&step);
            match step {
                Step::ReleaseLocks { app } => {
                    if !self.actions.has(&app) && self.host.quiesce.is_none() {
                        // They are released once no step holds them any more.
                        self.held_locks.guards.remove(&app);
                    }
                }
                Step::Reboot { reasons, activates } => {
                    (acts, applies) = (true, true);
                    self.start_reboot(&reasons, activates, span);
                }
                Step::StageOs { os } => {
                    acts = true;
                    self.start_on_os(OsAction::Stage(os), span);
                }
                Step::CommitOs { .. } => {
                    acts = true;
                    self.start_on_os(OsAction::Commit, span);
                }
                Step::RollBackOs { .. } => {
                    acts = true;
                    self.start_on_os(OsAction::RollBack, span);
                }
                step => {
                    (acts, applies) = (true, true);
                    self.start(step, span);
                }
            }
        }
        // The work after an action, or in its next phase, is planned in a separate pass.
        if self.conclude_actions() {
            self.again.notify_one();
            return true;
        }
        let rests = !acts && current.busy.is_empty() && !self.host_is_unknown();
        // The assumed effects of our own steps are verified once all steps have ended.
        if rests && self.view.verify() {
            self.observe();
        }
        if rests {
            self.forget_stops();
        }
        if rests && !waits {
            self.context.telemetry.counters.reached();
            if self.actions.is_empty() {
                self.forget_definitions();
                self.forget_keys();
            }
            self.retries.forget_steps();
            self.target.reached();
            self.held_locks.updates.clear();
            self.forget_reboots();
        }
        applies || self.host_is_unknown() || !self.actions.is_empty()
    }

    fn current(&mut self) -> CurrentState {
        let mut busy = self.in_flight.subjects();
        busy.extend(self.view.unknown().cloned());
        busy.extend(
            self.host
                .os
                .is_busy(self.effective_os())
                .then_some(Subject::Os),
        );
        let mut current = CurrentState {
            default_engine: self.context.engines.default_kind(),
            locks: self.held_locks.guards.keys().cloned().collect(),
            host: self.host.describe(self.actions.apps_to_start()),
            os: self.current_os(),
            local_mode: self.local_mode.is_on(),
            busy,
            failed: self.retries.failures(Instant::now()),
            ..self.view.current()
        };
        self.target.describe(&mut current);
        self.stored.describe(&mut current);
        self.actions.describe(&mut current);
        current
    }

    /// Forgets stopped containers that are gone or run again.
    fn forget_stops(&mut self) {
        self.stored
            .held
            .retain(|id| self.view.container(id).is_some());
        if self.stored.stopped.is_empty() || self.retries.has_silent_engines() {
            return;
        }
        for id in &self.stored.stopped {
            let container = self.view.container(id);
            if container.is_none_or(|container| container.state == ContainerState::Running) {
                let (context, id) = (Arc::clone(&self.context), id.clone());
                tokio::spawn(async move {
                    let not_stopped = StoredRecord::NotStopped(id.clone());
                    if let Err(why) = context.record(not_stopped).await {
                        tracing::warn!(container = %id, "failed to delete the record that `{id}` was stopped: {why}");
                    }
                });
            }
        }
    }

    /// Returns the next time at which something will be tried again.
    fn next_try(&self) -> Option<Instant> {
        let now = Instant::now();
        let actions = self.actions.next_try().into_iter();
        let host = self.host.next_look().into_iter();
        let trials = self.target.trials.times(self.trial_rules());
        let os = self.host.os.times(self.os_rules());
        self.retries
            .times()
            .chain(actions)
            .chain(host)
            .chain(trials)
            .chain(os)
            .filter(|at| *at > now)
            .min()
    }

    /// Lets the steps that disturb a service end within `patience`: a service should not stay killed because its
    /// supervisor was stopped. Locks are released with the guards.
    async fn end(mut self, mut messages: UnboundedReceiver<Message>, patience: Duration) {
        self.in_flight.cancel_pulls(|_| true);
        let finishing = async {
            while self
                .in_flight
                .any(|subject| matches!(subject, Subject::Service(_)))
            {
                match messages.recv().await {
                    Some(message) => self.on_message(message),
                    None => return,
                }
            }
        };
        if tokio::time::timeout(patience, finishing).await.is_err() {
            tracing::warn!(
                "stopping while a service is being changed; it is finished at the next start"
            );
        }
    }
}
