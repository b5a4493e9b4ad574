//! Actions: requests concerning the services of one app, in addition to the target (docs/spec/device.md#actions): stop,
//! start, restart, purge.
//!
//! An action is an intent that the loop takes into account, not a second way of changing things: it says which
//! containers are recreated, which stay stopped, and which apps are cleared first, and the planner does the rest.
//! Actions on one app are done in the order of the requests. Each begins by taking the update locks of its app. An
//! action that a kill could interrupt (restart, purge) is stored before its first step.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use model::{Action, ActionError, AppUuid, ContainerId, DesiredApp, ServiceName, Verb};
use serde::{Deserialize, Serialize};
use tokio::sync::oneshot;
use tokio::time::Instant;

use crate::locks::LockScope;

/// The channel for the outcome. The action continues even if the caller has gone.
pub(crate) type ActionReply = oneshot::Sender<Result<(), ActionError>>;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum ActionPhase {
    /// Its locks have not been requested yet.
    Waiting,
    /// They are being taken.
    Locking,
    /// It is being written to the store.
    Writing,
    /// The planner carries it out.
    Acting,
    /// A purge removes everything of the app.
    Clearing,
    /// A purge creates everything again.
    Restoring,
}

/// One action under way.
#[derive(Debug)]
pub(crate) struct OngoingAction {
    pub number: u64,
    pub app: AppUuid,
    pub state: StoredAction,
    /// `None` if it is completed after a restart of the supervisor: then it is tried until it succeeds.
    pub answer: Option<ActionReply>,
    pub begun: Instant,
    pub retry_at: Option<Instant>,
}

/// The request and its phase, as stored under the uuid of its app.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct StoredAction {
    pub verb: Verb,
    pub force: bool,
    pub phase: ActionPhase,
    /// The affected containers and services at its start.
    pub containers: BTreeSet<ContainerId>,
    pub services: BTreeSet<ServiceName>,
    /// The previous state of the app, if that is restored instead of its target: after a kill it may no longer be
    /// observable.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub restores: Option<Box<DesiredApp>>,
}

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

    pub(crate) fn of(&self, app: &AppUuid) -> Option<&OngoingAction> {
        self.queues.get(app)?.front()
    }

    pub(crate) fn of_mut(&mut self, app: &AppUuid) -> Option<&mut OngoingAction> {
        self.queues.get_mut(app)?.front_mut()
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

impl OngoingAction {
    /// Returns whether it must be completed after a kill: it removes containers that would otherwise not be restored.
    pub(crate) fn is_stored(&self) -> bool {
        matches!(self.state.verb, Verb::Restart(_) | Verb::Purge)
    }

    /// Returns the phase in which the planner takes it into account.
    pub(crate) fn first_phase(&self) -> ActionPhase {
        match self.state.verb {
            Verb::Purge => ActionPhase::Clearing,
            _ => ActionPhase::Acting,
        }
    }

    /// Returns whose locks it takes (docs/spec/device.md#locks-who).
    pub(crate) fn lock_scope(&self) -> LockScope {
        match self.state.verb {
            Verb::Stop(_) | Verb::Start(_) | Verb::Restart(Some(_)) => LockScope::WholeFolder,
            Verb::Restart(None) | Verb::Purge => LockScope::Named,
        }
    }

    pub(crate) fn disturbs(&self) -> bool {
        matches!(
            self.state.phase,
            ActionPhase::Acting | ActionPhase::Clearing | ActionPhase::Restoring
        )
    }

    /// Sends the outcome to the caller.
    pub(crate) fn answer(&mut self, outcome: Result<(), ActionError>) {
        if let Some(answer) = self.answer.take() {
            // The caller may have gone.
            let _ = answer.send(outcome);
        }
    }
}
