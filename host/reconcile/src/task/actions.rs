//! The loop's part in actions: takes their locks, reports them to the planner, and detects when they are done.

mod progress;

use std::collections::BTreeSet;
use std::sync::Arc;

use model::{ActionError, AppUuid, ServiceName, Verb};
use plan::{LockedWork, Subject};
use tokio::time::Instant;

use super::ReconcilerTask;
use crate::LockPolicy;
use crate::actions::{ActionPhase, ActionStart, LocksEffect};
use crate::locks::LockScope;
use crate::messages::{Message, StepFailure};

impl ReconcilerTask {
    /// Advances every action as far as possible without a plan.
    pub(super) fn begin_actions(&mut self) {
        for app in self.actions.apps() {
            let Some(underway) = self.actions.for_app(&app) else {
                continue;
            };
            if let Some(why) = underway.refusal(self.target.desired()) {
                self.end_action(&app, Err(ActionError::Failed(why)));
                continue;
            }
            let is_resumed = underway.answer.is_none();
            // If there is nothing to lock, the missing lock would be requested again and again.
            let lacks_locks = is_resumed
                && !self.held_locks.guards.contains_key(&app)
                && !self.has_nothing_to_lock(&app);
            let is_locking = self.in_flight.contains(&Subject::Locks(app.clone()));
            if underway.needs_locks(lacks_locks, Instant::now()) && !is_locking {
                self.take_locks_for_action(&app);
            }
        }
    }

    fn take_locks_for_action(&mut self, app: &AppUuid) {
        let services = self.view.services_of(app);
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
        self.retries.forget_step(&Subject::Locks(app.clone()));
        let mut scope = LockScope::Named;
        if let Some(underway) = self.actions.for_app_mut(app) {
            scope = underway.lock_scope();
            underway.begin_locking();
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
        let names = desired
            .chain(self.actions.restored_app(app))
            .flat_map(|app| app.services.keys().cloned());
        let there = self.view.services_of(app).into_iter();
        names.chain(there.map(|it| it.key.service)).collect()
    }

    /// Returns whether users' locks of an app are respected now.
    pub(super) fn policy(&self, app: &AppUuid) -> LockPolicy {
        LockPolicy::forced(self.actions.is_forced(app) || self.target.overrides_locks())
    }

    /// Handles the locks that an action waits for; returns whether that was all there is to do.
    pub(super) fn locks_for_action(
        &mut self,
        app: &AppUuid,
        outcome: &Result<(), StepFailure>,
    ) -> bool {
        let Some(underway) = self.actions.for_app_mut(app) else {
            return false;
        };
        match underway.end_locking(outcome, Instant::now()) {
            LocksEffect::Nothing => return false,
            LocksEffect::TriesAgain => {}
            LocksEffect::Begins => {
                self.start_action(app);
                return false;
            }
            LocksEffect::Fails(error) => self.end_action(app, Err(error)),
        }
        true
    }

    fn start_action(&mut self, app: &AppUuid) {
        let services = self.view.services_of(app);
        let underway = self.actions.for_app(app);
        let restores = underway.and_then(|it| self.as_it_is(app, &it.state.verb));
        let Some(underway) = self.actions.for_app_mut(app) else {
            return;
        };
        match underway.begin(&services, restores) {
            ActionStart::Hold => {
                let containers = underway.state.containers.iter().cloned();
                self.stored.held.extend(containers);
            }
            ActionStart::Start { ended } => {
                self.stored.release(&underway.state.containers);
                self.stored.stopped.extend(ended);
            }
            ActionStart::Store(stored) => {
                let number = underway.number;
                if stored.verb == Verb::Purge
                    && let Some(first) = services.first()
                {
                    self.context
                        .log(format!("Purging data for app {}", first.app_id));
                }
                let (context, app) = (Arc::clone(&self.context), app.clone());
                tokio::spawn(async move {
                    let written = context.persistence.put_action(app.clone(), stored).await;
                    context.send(Message::ActionWritten(app, number, written));
                });
            }
        }
    }

    /// Begins the action once it is stored.
    pub(super) fn action_written(
        &mut self,
        app: &AppUuid,
        number: u64,
        outcome: Result<(), String>,
    ) {
        let Some(underway) = self.actions.in_writing(app, number) else {
            return;
        };
        match outcome {
            Ok(()) => underway.state.phase = underway.first_phase(),
            Err(why) => self.end_action(app, Err(ActionError::Failed(why))),
        }
    }

    /// Ends actions that are done; returns whether any made progress. Called after the steps of the plan were started.
    pub(super) fn conclude_actions(&mut self) -> bool {
        let mut moved = false;
        for app in self.actions.apps() {
            let Some(underway) = self.actions.for_app(&app) else {
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
        let Some(underway) = self.actions.for_app_mut(app) else {
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
            if let Err(why) = context.persistence.put_action(app, stored).await {
                tracing::warn!("failed to store the progress of a purge: {why}");
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
            let forgotten = context.persistence.forget_action(app).await;
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
}
