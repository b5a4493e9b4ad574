//! Actions: requests concerning the services of one app, in addition to the target (docs/spec/device.md#actions): stop,
//! start, restart, purge.
//!
//! An action is an intent that the loop takes into account, not a second way of changing things: it says which
//! containers are recreated, which stay stopped, and which apps are cleared first, and the planner does the rest.
//! Actions on one app are done in the order of the requests. Each begins by taking the update locks of its app. An
//! action that a kill could interrupt (restart, purge) is stored before its first step.

mod ongoing_action;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use model::{Action, AppUuid, DesiredApp, Verb};
use plan::CurrentState;
use tokio::time::Instant;

use crate::messages::ActionReply;

pub(crate) use ongoing_action::{
    ActionPhase, ActionStart, LocksEffect, OngoingAction, StoredAction,
};

/// All actions, by app and in the order of the requests; the first of each app is the one in progress.
#[derive(Debug, Default)]
pub(crate) struct Actions {
    last_number: u64,
    queues: BTreeMap<AppUuid, VecDeque<OngoingAction>>,
}

impl Actions {
    pub(crate) fn add(&mut self, action: Action, answer: ActionReply) {
        let state = StoredAction {
            verb: action.verb,
            force: action.force,
            phase: ActionPhase::Waiting,
            containers: BTreeSet::new(),
            services: BTreeSet::new(),
            restores: None,
        };
        self.push(action.app, state, Some(answer));
    }

    /// Resumes an action that a kill interrupted.
    pub(crate) fn resume(&mut self, app: AppUuid, stored: StoredAction) {
        self.push(app, stored, None);
    }

    fn push(&mut self, app: AppUuid, state: StoredAction, answer: Option<ActionReply>) {
        self.last_number += 1;
        let queue = self.queues.entry(app.clone()).or_default();
        queue.push_back(OngoingAction {
            number: self.last_number,
            app,
            state,
            answer,
            begun: Instant::now(),
            retry_at: None,
        });
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.queues.is_empty()
    }

    pub(crate) fn has(&self, app: &AppUuid) -> bool {
        self.queues.contains_key(app)
    }

    /// Returns the apps that have an action.
    pub(crate) fn apps(&self) -> Vec<AppUuid> {
        self.queues.keys().cloned().collect()
    }

    /// Returns the actions in progress, one per app.
    pub(crate) fn current(&self) -> impl Iterator<Item = &OngoingAction> {
        self.queues.values().filter_map(VecDeque::front)
    }

    pub(crate) fn for_app(&self, app: &AppUuid) -> Option<&OngoingAction> {
        self.queues.get(app)?.front()
    }

    pub(crate) fn for_app_mut(&mut self, app: &AppUuid) -> Option<&mut OngoingAction> {
        self.queues.get_mut(app)?.front_mut()
    }

    /// Returns the action of an app with this number, if it is being written to the store.
    pub(crate) fn in_writing(&mut self, app: &AppUuid, number: u64) -> Option<&mut OngoingAction> {
        self.for_app_mut(app).filter(|underway| {
            underway.number == number && underway.state.phase == ActionPhase::Writing
        })
    }

    /// Returns whether the action of an app overrides users' locks.
    pub(crate) fn is_forced(&self, app: &AppUuid) -> bool {
        self.for_app(app)
            .is_some_and(|underway| underway.state.force)
    }

    /// Returns the previous state of an app, if its action restores that instead of the target.
    pub(crate) fn restored_app(&self, app: &AppUuid) -> Option<&DesiredApp> {
        self.for_app(app)?.state.restores.as_deref()
    }

    /// Returns the apps whose services somebody has requested to start, now or after they have stopped.
    pub(crate) fn apps_to_start(&self) -> BTreeSet<AppUuid> {
        let starts = self.current().filter(|underway| {
            let state = &underway.state;
            state.phase != ActionPhase::Waiting && !matches!(state.verb, Verb::Stop(_))
        });
        starts.map(|underway| underway.app.clone()).collect()
    }

    /// Copies the actions into the planner's input.
    pub(crate) fn describe(&self, current: &mut CurrentState) {
        for OngoingAction { app, state, .. } in self.current() {
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

    /// Removes and returns the current action of an app.
    pub(crate) fn take(&mut self, app: &AppUuid) -> Option<OngoingAction> {
        let queue = self.queues.get_mut(app)?;
        let first = queue.pop_front();
        if queue.is_empty() {
            self.queues.remove(app);
        }
        first
    }

    /// Returns the time of the next retry.
    pub(crate) fn next_try(&self) -> Option<Instant> {
        self.current()
            .filter_map(|underway| underway.retry_at)
            .min()
    }
}

#[cfg(test)]
mod tests;
