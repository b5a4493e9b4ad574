//! Actions: what callers ask to be done with the services of one app beside the target (docs/spec/device.md#actions):
//! stop, start, restart, purge.
//!
//! An action is an intent to the loop and no second way of changing things: it says which containers
//! are to be made anew, which stay stopped, and which apps are cleared first, and the planner does the
//! rest. Actions on one app are done in the order in which they were asked for. Each begins by taking
//! the update locks of its app; what a kill may cut short (restart, purge) is in the store before the
//! first step.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use model::{Action, ActionError, AppUuid, ContainerId, DesiredApp, ServiceName, Verb};
use serde::{Deserialize, Serialize};
use tokio::sync::oneshot;
use tokio::time::Instant;

use crate::locks::LockScope;

/// Where the answer goes. Who asked may have gone meanwhile; the action goes on.
pub(crate) type ActionReply = oneshot::Sender<Result<(), ActionError>>;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum ActionPhase {
    /// Its locks are to be taken.
    Waiting,
    /// They are being taken.
    Locking,
    /// The store is told of it.
    Writing,
    /// The planner does it.
    Acting,
    /// A purge removes what there is.
    Clearing,
    /// A purge makes everything anew.
    Restoring,
}

/// One action under way.
#[derive(Debug)]
pub(crate) struct OngoingAction {
    pub number: u64,
    pub app: AppUuid,
    pub state: StoredAction,
    /// `None` where it is finished after a restart of the supervisor: then it is tried until it succeeds.
    pub answer: Option<ActionReply>,
    pub begun: Instant,
    pub retry_at: Option<Instant>,
}

/// What is to be done and how far it is: what the store keeps of an action, under the uuid of its app.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct StoredAction {
    pub verb: Verb,
    pub force: bool,
    pub phase: ActionPhase,
    /// What it began with.
    pub containers: BTreeSet<ContainerId>,
    pub services: BTreeSet<ServiceName>,
    /// The app as it was, where that is what comes back and not its target: a kill may leave nothing of it to read that
    /// from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub restores: Option<Box<DesiredApp>>,
}

/// All actions, by app and in the order in which they were asked for; the first of each app is the one
/// that is done now.
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

    /// Takes up what a kill cut short.
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

    /// The apps that have an action.
    pub(crate) fn apps(&self) -> Vec<AppUuid> {
        self.queues.keys().cloned().collect()
    }

    /// The actions that are done now, one of each app.
    pub(crate) fn current(&self) -> impl Iterator<Item = &OngoingAction> {
        self.queues.values().filter_map(VecDeque::front)
    }

    pub(crate) fn of(&self, app: &AppUuid) -> Option<&OngoingAction> {
        self.queues.get(app)?.front()
    }

    pub(crate) fn of_mut(&mut self, app: &AppUuid) -> Option<&mut OngoingAction> {
        self.queues.get_mut(app)?.front_mut()
    }

    /// Takes the current action of an app out.
    pub(crate) fn take(&mut self, app: &AppUuid) -> Option<OngoingAction> {
        let queue = self.queues.get_mut(app)?;
        let first = queue.pop_front();
        if queue.is_empty() {
            self.queues.remove(app);
        }
        first
    }

    /// When something is to be tried again.
    pub(crate) fn next_try(&self) -> Option<Instant> {
        self.current()
            .filter_map(|underway| underway.retry_at)
            .min()
    }
}

impl OngoingAction {
    /// Whether a kill must be followed by its rest: it removes what would not come back as it was.
    pub(crate) fn is_stored(&self) -> bool {
        matches!(self.state.verb, Verb::Restart(_) | Verb::Purge)
    }

    /// The phase in which the planner is told of it.
    pub(crate) fn first_phase(&self) -> ActionPhase {
        match self.state.verb {
            Verb::Purge => ActionPhase::Clearing,
            _ => ActionPhase::Acting,
        }
    }

    /// Whose locks it takes (docs/spec/device.md#locks-who).
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

    /// Tells whoever asked.
    pub(crate) fn answer(&mut self, outcome: Result<(), ActionError>) {
        if let Some(answer) = self.answer.take() {
            // A caller that has gone does not need to know.
            let _ = answer.send(outcome);
        }
    }
}
