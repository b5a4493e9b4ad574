//! The loop's part in actions: takes their locks, tells the planner of them, and sees when they are
//! done.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use model::{
    ActionError, AppUuid, ContainerId, ContainerState, CurrentService, ServiceKey, ServiceName,
    Verb,
};
use plan::{CurrentState, LockedWork, Subject};
use tokio::time::Instant;

use super::ReconcilerTask;
use crate::actions::{ActionPhase, OngoingAction, StoredAction};
use crate::locks::LockScope;
use crate::messages::{Message, StepFailure};
use crate::{LockPolicy, apply};

/// How long an action waits for locks that another operation of this supervisor holds
/// (docs/spec/device.md#locks-wait).
const PATIENCE: Duration = Duration::from_secs(10);
/// Between two looks at such a lock.
const LOOK_AGAIN: Duration = Duration::from_millis(50);

impl ReconcilerTask {
    /// Brings every action as far as it goes without a plan.
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
            let resumed = underway.answer.is_none() && !self.held_locks.contains(&app);
            // Where there is nothing to lock, the lock that it lacks would be asked for again and again.
            let lacks_lock = resumed && !self.has_nothing_to_lock(&app);
            let begins =
                underway.phase == ActionPhase::Waiting || (underway.disturbs() && lacks_lock);
            if begins && !waits && !self.in_flight.contains(&locks) {
                self.take_locks_for_action(&app);
            }
        }
    }

    /// Why nothing can be done with the app now.
    fn refusal(&self, app: &AppUuid) -> Option<String> {
        if self.target.desired.is_none() {
            return Some("the device has no target state".to_owned());
        }
        let wanted = self.target.app(app)?;
        if wanted.not_ours {
            return Some(format!("app `{app}` is not run by this supervisor"));
        }
        if wanted.rejected {
            return Some(format!(
                "the release of app `{app}` was rejected, so what runs of it is left alone"
            ));
        }
        let Verb::Start(name) = &self.actions.of(app)?.action.verb else {
            return None;
        };
        let is_off = wanted
            .services
            .get(name)
            .is_some_and(|service| !service.running);
        is_off.then(|| format!("the target state says that service `{name}` is not to run"))
    }

    fn take_locks_for_action(&mut self, app: &AppUuid) {
        let services: Vec<CurrentService> = self.services_of(app);
        let id = self.target.app(app).map(|app| app.id);
        let Some(app_id) = id.or(services.first().map(|service| service.app_id)) else {
            // Nothing of it is left, which is what was asked for.
            self.end_action(app, Ok(()));
            return;
        };
        let locked = LockedWork {
            app: app.clone(),
            app_id,
            services: self.services_to_lock(app),
            work: Vec::new(),
        };
        let held = self.held_locks.of(app);
        let policy = self.policy(app);
        // A back-off of the update is not one of the action.
        self.retries.forget_step(&Subject::Locks(app.clone()));
        self.in_flight.begin_locked(&locked);
        let mut reach = LockScope::Named;
        if let Some(underway) = self.actions.of_mut(app) {
            reach = underway.reach();
            underway.retry_at = None;
            if underway.phase == ActionPhase::Waiting {
                underway.phase = ActionPhase::Locking;
            }
        }
        apply::spawn_locked(&self.context, locked, reach, held, policy);
    }

    /// Whether the app is wanted, and without services.
    fn has_nothing_to_lock(&self, app: &AppUuid) -> bool {
        self.target.app(app).is_some() && self.services_to_lock(app).is_empty()
    }

    /// The services of an app whose locks an action takes: those that it has, is to have, and gets back.
    fn services_to_lock(&self, app: &AppUuid) -> BTreeSet<ServiceName> {
        let wanted = self.target.app(app).into_iter();
        let restores = self.actions.of(app).and_then(|it| it.restores.as_deref());
        let names = wanted
            .chain(restores)
            .flat_map(|app| app.services.keys().cloned());
        let there = self.services_of(app).into_iter();
        names.chain(there.map(|it| it.key.service)).collect()
    }

    /// Whether users' locks of an app are respected now.
    pub(super) fn policy(&self, app: &AppUuid) -> LockPolicy {
        let forced = self.actions.of(app).is_some_and(|u| u.action.force);
        if forced {
            LockPolicy::Override
        } else {
            self.target.lock_policy()
        }
    }

    /// Takes note of the locks that an action waits for; answers whether that was all there is to do.
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
                if underway.phase == ActionPhase::Locking {
                    self.locks_are_taken(app);
                }
                false
            }
            // The planner's own attempt, while the action waits for its turn.
            Err(_) if underway.phase == ActionPhase::Waiting => false,
            Err(failure) => {
                if failure.is_busy && underway.begun.elapsed() < PATIENCE {
                    underway.phase = match underway.phase {
                        ActionPhase::Locking => ActionPhase::Waiting,
                        other => other,
                    };
                    underway.retry_at = Some(Instant::now() + LOOK_AGAIN);
                    return true;
                }
                if underway.answer.is_none() {
                    // Cut short by a kill: it waits for the lock as an update does.
                    return false;
                }
                let why = failure.reason.clone();
                let error = if failure.lock.is_some() || failure.is_busy {
                    ActionError::Locked(why)
                } else {
                    ActionError::Failed(why)
                };
                self.end_action(app, Err(error));
                true
            }
        }
    }

    fn locks_are_taken(&mut self, app: &AppUuid) {
        let services = self.services_of(app);
        let verb = self.actions.of(app).map(|u| u.action.verb.clone());
        let restores = verb.and_then(|verb| self.as_it_is(app, &verb));
        let Some(underway) = self.actions.of_mut(app) else {
            return;
        };
        underway.restores = restores.map(Box::new);
        let concerned: Vec<&CurrentService> = services
            .iter()
            .filter(|service| match &underway.action.verb {
                Verb::Stop(name) | Verb::Start(name) | Verb::Restart(Some(name)) => {
                    service.key.service == *name
                }
                Verb::Restart(None) | Verb::Purge => true,
            })
            .collect();
        underway.containers = concerned.iter().map(|s| s.container.clone()).collect();
        underway.services = concerned.iter().map(|s| s.key.service.clone()).collect();
        if !underway.is_stored() {
            underway.phase = ActionPhase::Acting;
            if matches!(underway.action.verb, Verb::Stop(_)) {
                self.stored.hold(&underway.containers);
                return;
            }
            self.stored.release(&underway.containers);
            // One that ended by itself is started like one that was stopped.
            let ended = concerned
                .into_iter()
                .filter(|service| service.state == ContainerState::Exited);
            self.stored
                .stopped
                .extend(ended.map(|service| service.container.clone()));
            return;
        }
        underway.phase = ActionPhase::Writing;
        let stored = StoredAction {
            phase: underway.first_phase(),
            ..underway.to_store()
        };
        let number = underway.number;
        if underway.action.verb == Verb::Purge
            && let Some(first) = services.first()
        {
            let line = format!("Purging data for app {}", first.app_id);
            self.context.telemetry.hub.system(line);
        }
        let (context, app) = (Arc::clone(&self.context), app.clone());
        tokio::spawn(async move {
            let written = context.journal.put_action(app.clone(), stored).await;
            context.tell(Message::ActionWritten(app, number, written));
        });
    }

    /// The store holds the action: now it may begin.
    pub(super) fn action_written(
        &mut self,
        app: &AppUuid,
        number: u64,
        outcome: Result<(), String>,
    ) {
        let is_it = |underway: &&mut OngoingAction| {
            underway.number == number && underway.phase == ActionPhase::Writing
        };
        let Some(underway) = self.actions.of_mut(app).filter(is_it) else {
            return;
        };
        match outcome {
            Ok(()) => underway.phase = underway.first_phase(),
            Err(why) => self.end_action(app, Err(ActionError::Failed(why))),
        }
    }

    /// What the planner is told.
    pub(super) fn describe_actions(&self, current: &mut CurrentState) {
        for underway in self.actions.current() {
            if underway.restores.is_some() {
                current.restored.insert(underway.action.app.clone());
            }
            match underway.phase {
                ActionPhase::Acting if matches!(underway.action.verb, Verb::Restart(_)) => {
                    let containers = underway.containers.iter().cloned();
                    current.recreated.extend(containers);
                }
                ActionPhase::Clearing => {
                    current.purged.insert(underway.action.app.clone());
                }
                _ => {}
            }
        }
    }

    /// Ends the actions that have been done; answers whether any moved on. After the steps of the plan
    /// were started.
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
            if underway.phase == ActionPhase::Clearing {
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
        underway.phase = ActionPhase::Restoring;
        let stored = underway.to_store();
        let (context, app) = (Arc::clone(&self.context), app.clone());
        // Not waited for: a purge that clears twice has lost nothing that it should keep.
        tokio::spawn(async move {
            if let Err(why) = context.journal.put_action(app, stored).await {
                tracing::warn!("failed to note how far a purge is: {why}");
            }
        });
    }

    fn is_reached(&self, app: &AppUuid, underway: &OngoingAction) -> bool {
        let services = self.services_of(app);
        let idle = |service: &ServiceName| {
            let key = ServiceKey {
                app: app.clone(),
                service: service.clone(),
            };
            !self.in_flight.contains(&Subject::Service(key))
        };
        let mut concerned = services
            .iter()
            .filter(|service| underway.containers.contains(&service.container));
        match (&underway.action.verb, underway.phase) {
            (Verb::Stop(name), _) => idle(name) && concerned.all(|service| !service.runs()),
            (Verb::Start(name), _) => {
                let started = |service: &CurrentService| match service.state {
                    ContainerState::Created => false,
                    ContainerState::Exited => !self.stored.stopped.contains(&service.container),
                    _ => true,
                };
                idle(name) && concerned.all(started)
            }
            (_, ActionPhase::Clearing) => {
                let current = self.view.current();
                let mut left = current.volumes.iter().chain(&current.networks);
                current.all_answer()
                    && services.is_empty()
                    && left.all(|left| left.app.as_ref() != Some(app))
            }
            _ => {
                let made = |name: &ServiceName| self.is_made(app, name, &underway.containers);
                let names = &underway.services;
                concerned.next().is_none() && names.iter().all(|name| idle(name) && made(name))
            }
        }
    }

    /// Whether a service has a container that is not one of `old`, started where it should be.
    fn is_made(&self, app: &AppUuid, name: &ServiceName, old: &BTreeSet<ContainerId>) -> bool {
        let desired = self.app_wanted_now(app);
        let Some(wanted) = desired.and_then(|app| app.services.get(name)) else {
            // The target has no such service any more.
            return true;
        };
        self.services_of(app).iter().any(|service| {
            service.key.service == *name
                && !old.contains(&service.container)
                && !(wanted.running && service.state == ContainerState::Created)
        })
    }

    /// Takes a failed step for the failure of the action that needs it.
    pub(super) fn step_of_action_failed(&mut self, subject: &Subject, reason: &str) {
        for app in self.actions.apps() {
            let Some(underway) = self.actions.of(&app) else {
                continue;
            };
            if underway.disturbs()
                && underway.answer.is_some()
                && self.needs(&app, underway, subject)
            {
                let error = ActionError::Failed(reason.to_owned());
                self.end_action(&app, Err(error));
            }
        }
    }

    fn needs(&self, app: &AppUuid, underway: &OngoingAction, subject: &Subject) -> bool {
        let desired = self.app_wanted_now(app);
        match subject {
            Subject::Service(key) => key.app == *app && underway.services.contains(&key.service),
            Subject::Component(_, _, name) => {
                let current = self.view.current();
                let mut held = current.volumes.iter().chain(&current.networks);
                let is_held = held.any(|c| c.name == *name && c.app.as_ref() == Some(app));
                let is_wanted = desired.is_some_and(|app| {
                    let volumes = app.volumes.values().map(|volume| &volume.engine_name);
                    let networks = app.networks.values().map(|network| &network.engine_name);
                    volumes.chain(networks).any(|wanted| wanted == name)
                });
                underway.action.verb == Verb::Purge && (is_held || is_wanted)
            }
            Subject::Image(image) => desired.is_some_and(|app| {
                let mut names = underway.services.iter();
                names.any(|name| {
                    let service = app.services.get(name);
                    service.is_some_and(|service| service.config.image == *image)
                })
            }),
            _ => false,
        }
    }

    /// Takes the action off the queue, and its trace out of the store before whoever asked is told.
    pub(super) fn end_action(&mut self, app: &AppUuid, outcome: Result<(), ActionError>) {
        let Some(mut underway) = self.actions.take(app) else {
            return;
        };
        if let (Verb::Stop(_), Err(_)) = (&underway.action.verb, &outcome) {
            self.stored.release(&underway.containers);
        }
        if underway.action.verb == Verb::Purge {
            self.context.telemetry.hub.system(match &outcome {
                Ok(()) => "Purged data".to_owned(),
                Err(error) => format!("Error purging data: {error}"),
            });
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
