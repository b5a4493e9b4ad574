//! The loop's part in actions: takes their locks, reports them to the planner, and detects when they are done.

mod progress;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use model::{ActionError, AppUuid, ContainerState, CurrentService, ServiceName, Verb};
use plan::{CurrentState, LockedWork, Subject};
use tokio::time::Instant;

use super::ReconcilerTask;
use crate::LockPolicy;
use crate::actions::{ActionPhase, OngoingAction, StoredAction};
use crate::locks::LockScope;
use crate::messages::{Message, StepFailure};

/// How long an action waits for locks that another operation of this supervisor holds
/// (docs/spec/device.md#locks-wait).
const PATIENCE: Duration = Duration::from_secs(10);
/// The interval between two attempts to take such a lock.
const LOOK_AGAIN: Duration = Duration::from_millis(50);

impl ReconcilerTask {
    /// Advances every action as far as possible without a plan.
    pub(super) fn begin_actions(&mut self) {
        for app in self.actions.apps() {
            let Some(underway) = self.actions.of(&app) else {
                continue;
            };
            if let Some(why) = self.refusal(&app) {
                self.end_action(&app, Err(ActionError::Failed(why)));
                continue;
            }
            let now = Instant::now();
            let waits = underway.retry_at.is_some_and(|at| at > now);
            let locks = Subject::Locks(app.clone());
            let resumed = underway.answer.is_none() && !self.held_locks.guards.contains_key(&app);
            // If there is nothing to lock, the missing lock would be requested again and again.
            let lacks_lock = resumed && !self.has_nothing_to_lock(&app);
            let begins =
                underway.state.phase == ActionPhase::Waiting || (underway.disturbs() && lacks_lock);
            if begins && !waits && !self.in_flight.contains(&locks) {
                self.take_locks_for_action(&app);
            }
        }
    }

    /// Returns why nothing can be done with the app now.
    fn refusal(&self, app: &AppUuid) -> Option<String> {
        if self.target.desired.is_none() {
            return Some("the device has no target state".to_owned());
        }
        let desired = self.target.app(app)?;
        if desired.not_ours {
            return Some(format!("app `{app}` is not run by this supervisor"));
        }
        if desired.rejected {
            return Some(format!(
                "the release of app `{app}` was rejected, so its running services are left alone"
            ));
        }
        let Verb::Start(name) = &self.actions.of(app)?.state.verb else {
            return None;
        };
        let is_off = desired
            .services
            .get(name)
            .is_some_and(|service| !service.running);
        is_off.then(|| format!("the target state stops service `{name}`"))
    }

    fn take_locks_for_action(&mut self, app: &AppUuid) {
        let services = self.services_of(app);
        let id = self.target.app(app).map(|app| app.id);
        let Some(app_id) = id.or(services.first().map(|service| service.app_id)) else {
            // Nothing of it is left, which is the desired result.
            self.end_action(app, Ok(()));
            return;
        };
        let locked = LockedWork {
            app: app.clone(),
            app_id,
            services: self.services_to_lock(app),
            work: Vec::new(),
        };
        let policy = self.policy(app);
        // A back-off of the update does not apply to the action.
        self.retries.steps.remove(&Subject::Locks(app.clone()));
        let mut scope = LockScope::Named;
        if let Some(underway) = self.actions.of_mut(app) {
            scope = underway.lock_scope();
            underway.retry_at = None;
            if underway.state.phase == ActionPhase::Waiting {
                underway.state.phase = ActionPhase::Locking;
            }
        }
        self.start_locked(locked, scope, policy, None);
    }

    /// Returns whether the app is desired, and without services.
    fn has_nothing_to_lock(&self, app: &AppUuid) -> bool {
        self.target.app(app).is_some() && self.services_to_lock(app).is_empty()
    }

    /// Returns the services of an app whose locks an action takes: its current, desired and restored ones.
    fn services_to_lock(&self, app: &AppUuid) -> BTreeSet<ServiceName> {
        let desired = self.target.app(app).into_iter();
        let restores = self
            .actions
            .of(app)
            .and_then(|it| it.state.restores.as_deref());
        let names = desired
            .chain(restores)
            .flat_map(|app| app.services.keys().cloned());
        let there = self.services_of(app).into_iter();
        names.chain(there.map(|it| it.key.service)).collect()
    }

    /// Returns whether users' locks of an app are respected now.
    pub(super) fn policy(&self, app: &AppUuid) -> LockPolicy {
        let is_forced = self.actions.of(app).is_some_and(|it| it.state.force);
        LockPolicy::forced(is_forced || self.target.overrides_locks())
    }

    /// Handles the locks that an action waits for; returns whether that was all there is to do.
    pub(super) fn locks_for_action(
        &mut self,
        app: &AppUuid,
        outcome: &Result<(), StepFailure>,
    ) -> bool {
        let Some(underway) = self.actions.of_mut(app) else {
            return false;
        };
        match outcome {
            Ok(()) => {
                if underway.state.phase == ActionPhase::Locking {
                    self.locks_are_taken(app);
                }
                false
            }
            // An attempt of the planner's, while the action waits for its turn.
            Err(_) if underway.state.phase == ActionPhase::Waiting => false,
            Err(failure) => {
                if failure.is_busy && underway.begun.elapsed() < PATIENCE {
                    if underway.state.phase == ActionPhase::Locking {
                        underway.state.phase = ActionPhase::Waiting;
                    }
                    underway.retry_at = Some(Instant::now() + LOOK_AGAIN);
                    return true;
                }
                if underway.answer.is_none() {
                    // Interrupted by a kill: it waits for the lock like an update.
                    return false;
                }
                self.end_action(app, Err(failure.to_action_error()));
                true
            }
        }
    }

    fn locks_are_taken(&mut self, app: &AppUuid) {
        let services = self.services_of(app);
        let underway = self.actions.of(app);
        let restores = underway.and_then(|it| self.as_it_is(app, &it.state.verb));
        let Some(underway) = self.actions.of_mut(app) else {
            return;
        };
        let is_stored = underway.is_stored();
        let first_phase = underway.first_phase();
        let state = &mut underway.state;
        state.restores = restores.map(Box::new);
        let concerned: Vec<&CurrentService> = services
            .iter()
            .filter(|service| match &state.verb {
                Verb::Stop(name) | Verb::Start(name) | Verb::Restart(Some(name)) => {
                    service.key.service == *name
                }
                Verb::Restart(None) | Verb::Purge => true,
            })
            .collect();
        state.containers = concerned.iter().map(|s| s.container.clone()).collect();
        state.services = concerned.iter().map(|s| s.key.service.clone()).collect();
        if !is_stored {
            state.phase = ActionPhase::Acting;
            if matches!(state.verb, Verb::Stop(_)) {
                self.stored.held.extend(state.containers.iter().cloned());
                return;
            }
            self.stored.release(&state.containers);
            // A container that exited by itself is started like one that was stopped.
            let mut ended = concerned;
            ended.retain(|service| service.state == ContainerState::Exited);
            let ended = ended.into_iter().map(|service| service.container.clone());
            self.stored.stopped.extend(ended);
            return;
        }
        state.phase = ActionPhase::Writing;
        let stored = StoredAction {
            phase: first_phase,
            ..state.clone()
        };
        let number = underway.number;
        if stored.verb == Verb::Purge
            && let Some(first) = services.first()
        {
            self.context
                .log(format!("Purging data for app {}", first.app_id));
        }
        let (context, app) = (Arc::clone(&self.context), app.clone());
        tokio::spawn(async move {
            let written = context.journal.put_action(app.clone(), stored).await;
            context.tell(Message::ActionWritten(app, number, written));
        });
    }

    /// Begins the action once it is stored.
    pub(super) fn action_written(
        &mut self,
        app: &AppUuid,
        number: u64,
        outcome: Result<(), String>,
    ) {
        let is_it = |underway: &&mut OngoingAction| {
            underway.number == number && underway.state.phase == ActionPhase::Writing
        };
        let Some(underway) = self.actions.of_mut(app).filter(is_it) else {
            return;
        };
        match outcome {
            Ok(()) => underway.state.phase = underway.first_phase(),
            Err(why) => self.end_action(app, Err(ActionError::Failed(why))),
        }
    }

    /// Copies the actions into the planner's input.
    pub(super) fn describe_actions(&self, current: &mut CurrentState) {
        for OngoingAction { app, state, .. } in self.actions.current() {
            if state.restores.is_some() {
                current.restored.insert(app.clone());
            }
            match (state.phase, &state.verb) {
                (ActionPhase::Acting, Verb::Restart(_)) => {
                    let containers = state.containers.iter().cloned();
                    current.recreated.extend(containers);
                }
                (ActionPhase::Clearing, _) => {
                    current.purged.insert(app.clone());
                }
                _ => {}
            }
        }
    }

    /// Ends actions that are done; returns whether any made progress. Called after the steps of the plan were started.
    pub(super) fn conclude_actions(&mut self) -> bool {
        let mut moved = false;
        for app in self.actions.apps() {
            let Some(underway) = self.actions.of(&app) else {
                continue;
            };
            if !underway.disturbs() || !self.is_reached(&app, underway) {
                continue;
            }
            moved = true;
            if underway.state.phase == ActionPhase::Clearing {
                self.restore(&app);
            } else {
                self.end_action(&app, Ok(()));
            }
        }
        moved
    }

    fn restore(&mut self, app: &AppUuid) {
        let Some(underway) = self.actions.of_mut(app) else {
            return;
        };
        underway.state.phase = ActionPhase::Restoring;
        let (context, app, stored) = (
            Arc::clone(&self.context),
            app.clone(),
            underway.state.clone(),
        );
        // Not waited for: a purge that clears twice loses nothing that should be kept.
        tokio::spawn(async move {
            if let Err(why) = context.journal.put_action(app, stored).await {
                tracing::warn!("failed to note how far a purge is: {why}");
            }
        });
    }

    /// Removes the action from the queue, and its record from the store before the caller gets the outcome.
    pub(super) fn end_action(&mut self, app: &AppUuid, outcome: Result<(), ActionError>) {
        let Some(mut underway) = self.actions.take(app) else {
            return;
        };
        match (&underway.state.verb, &outcome) {
            (Verb::Stop(_), Err(_)) => self.stored.release(&underway.state.containers),
            (Verb::Purge, Ok(())) => self.context.log("Purged data"),
            (Verb::Purge, Err(error)) => {
                self.context.log(format!("Error purging data: {error}"));
            }
            _ => {}
        }
        if !(underway.is_stored() && underway.disturbs()) {
            underway.answer(outcome);
            return;
        }
        let (context, app) = (Arc::clone(&self.context), app.clone());
        tokio::spawn(async move {
            let forgotten = context.journal.forget_action(app).await;
            if let Err(why) = &forgotten {
                tracing::warn!(
                    "failed to note that an action is done, it may be done again: {why}"
                );
            }
            underway.answer(outcome);
        });
    }

    pub(super) fn end_all_actions(&mut self, why: &str) {
        while let Some(app) = self.actions.apps().first() {
            self.end_action(app, Err(ActionError::Failed(why.to_owned())));
        }
    }

    pub(super) fn services_of(&self, app: &AppUuid) -> Vec<CurrentService> {
        let services = self.view.services();
        services.filter(|service| service.key.app == *app).collect()
    }
}
