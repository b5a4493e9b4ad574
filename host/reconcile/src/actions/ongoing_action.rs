//! One action: the phases that it goes through, and what the end of each step means for it.

use std::collections::BTreeSet;
use std::time::Duration;

use model::{
    ActionError, AppUuid, ContainerId, ContainerState, CurrentService, DesiredApp, DesiredState,
    ServiceName, Verb,
};
use serde::{Deserialize, Serialize};
use tokio::time::Instant;

use crate::locks::LockScope;
use crate::messages::{ActionReply, StepFailure};

/// How long an action waits for locks that another operation of this supervisor holds
/// (docs/spec/device.md#locks-wait).
const PATIENCE: Duration = Duration::from_secs(10);
/// The interval between two attempts to take such a lock.
const LOOK_AGAIN: Duration = Duration::from_millis(50);

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

/// What the end of an attempt to take locks means for an action.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum LocksEffect {
    /// The action begins: its locks are held.
    Begins,
    /// Nothing: the attempt counts like one of the planner.
    Nothing,
    /// The action tries again, and nothing else is concerned.
    TriesAgain,
    /// The action fails.
    Fails(ActionError),
}

/// What the loop does when an action begins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ActionStart {
    /// Keeps its containers stopped, once they are.
    Hold,
    /// Starts its containers; these have exited by themselves, and are started like those that were stopped.
    Start { ended: BTreeSet<ContainerId> },
    /// Writes this to the store before the first step.
    Store(StoredAction),
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

    /// Returns why nothing can be done with its app in this target now.
    pub(crate) fn refusal(&self, desired: Option<&DesiredState>) -> Option<String> {
        let Some(desired) = desired else {
            return Some("the device has no target state".to_owned());
        };
        let app = &self.app;
        let desired = desired.apps.get(app)?;
        if desired.not_ours {
            return Some(format!("app `{app}` is not run by this supervisor"));
        }
        if desired.rejected {
            return Some(format!(
                "the release of app `{app}` was rejected, so the supervisor does not change its running services"
            ));
        }
        let Verb::Start(name) = &self.state.verb else {
            return None;
        };
        let is_off = desired
            .services
            .get(name)
            .is_some_and(|service| !service.running);
        is_off.then(|| format!("the target state stops service `{name}`"))
    }

    /// Returns whether its locks have to be taken now; `lacks_locks` says whether they are missing although it has
    /// begun, since a kill interrupted it.
    pub(crate) fn needs_locks(&self, lacks_locks: bool, now: Instant) -> bool {
        let is_waiting = self.state.phase == ActionPhase::Waiting;
        let is_later = self.retry_at.is_some_and(|at| at > now);
        (is_waiting || (self.disturbs() && lacks_locks)) && !is_later
    }

    /// Records that its locks are being taken.
    pub(crate) fn begin_locking(&mut self) {
        self.retry_at = None;
        if self.state.phase == ActionPhase::Waiting {
            self.state.phase = ActionPhase::Locking;
        }
    }

    /// Records the end of an attempt to take the locks of its app.
    pub(crate) fn end_locking(
        &mut self,
        outcome: &Result<(), StepFailure>,
        now: Instant,
    ) -> LocksEffect {
        let is_locking = self.state.phase == ActionPhase::Locking;
        match outcome {
            Ok(()) if is_locking => LocksEffect::Begins,
            Ok(()) => LocksEffect::Nothing,
            // An attempt of the planner's, while the action waits for its turn.
            Err(_) if self.state.phase == ActionPhase::Waiting => LocksEffect::Nothing,
            Err(failure) if failure.is_busy && now < self.begun + PATIENCE => {
                if is_locking {
                    self.state.phase = ActionPhase::Waiting;
                }
                self.retry_at = Some(now + LOOK_AGAIN);
                LocksEffect::TriesAgain
            }
            // Interrupted by a kill: it waits for the lock like an update.
            Err(_) if self.answer.is_none() => LocksEffect::Nothing,
            Err(failure) => LocksEffect::Fails(failure.to_action_error()),
        }
    }

    /// Begins it, now that its locks are held: on those of the app's current `services` that it concerns, and restoring
    /// `restores` in place of the target.
    pub(crate) fn begin(
        &mut self,
        services: &[CurrentService],
        restores: Option<DesiredApp>,
    ) -> ActionStart {
        let is_stored = self.is_stored();
        let first_phase = self.first_phase();
        let state = &mut self.state;
        state.restores = restores.map(Box::new);
        let concerned = |service: &&CurrentService| match &state.verb {
            Verb::Stop(name) | Verb::Start(name) | Verb::Restart(Some(name)) => {
                service.key.service == *name
            }
            Verb::Restart(None) | Verb::Purge => true,
        };
        let concerned: Vec<&CurrentService> = services.iter().filter(concerned).collect();
        state.containers = concerned.iter().map(|s| s.container.clone()).collect();
        state.services = concerned.iter().map(|s| s.key.service.clone()).collect();
        if is_stored {
            state.phase = ActionPhase::Writing;
            return ActionStart::Store(StoredAction {
                phase: first_phase,
                ..state.clone()
            });
        }
        state.phase = ActionPhase::Acting;
        if matches!(state.verb, Verb::Stop(_)) {
            return ActionStart::Hold;
        }
        let ended = concerned.into_iter();
        let ended = ended.filter(|service| service.state == ContainerState::Exited);
        ActionStart::Start {
            ended: ended.map(|service| service.container.clone()).collect(),
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
