//! The reason for each step of a forecast: the planner gives the reason for removals, and whatever is created again
//! afterwards has the same reason.

use std::collections::BTreeMap;

use device_types::plan::StepReason;
use model::{CurrentService, ServiceKey};

use super::AnyStep;
use crate::{ContainerRef, CurrentState, LockedStep, ReplacedKeys, Step, Subject};

/// Causes of steps that the state before them does not show.
#[derive(Debug, Default)]
pub(super) struct Causes {
    /// The reasons for removals, by subject, for what is created again.
    gone: BTreeMap<Subject, StepReason>,
    /// Services whose containers are recreated because of their API key.
    pub(super) replaced_keys: ReplacedKeys,
}

impl Causes {
    pub(super) fn explain(&mut self, step: &AnyStep, state: &CurrentState) -> StepReason {
        match step {
            AnyStep::Locked(service, step) => self.explain_locked(service, step, state),
            AnyStep::Free(step) => self.explain_free(step),
        }
    }

    fn explain_free(&mut self, step: &Step) -> StepReason {
        match step {
            Step::PullImage { .. } => StepReason::Missing,
            Step::RemoveImage { .. } => StepReason::Unused,
            Step::CreateComponent { .. } => self.came_of(&step.subject()),
            Step::RemoveComponent { reason, .. } => self.went(step.subject(), *reason),
            Step::RemoveDead { .. } => StepReason::Dead,
            Step::StartExisting { .. } => StepReason::NotRunning,
            Step::RecordCommit { .. } => StepReason::Reached,
            Step::ForgetCommit { .. } => StepReason::NotInTarget,
            Step::Configure { .. } => StepReason::ConfigurationChanged,
            Step::StageOs { .. } => StepReason::Missing,
            Step::CommitOs { .. } => StepReason::Reached,
            Step::RollBackOs { .. } => StepReason::Unhealthy,
            Step::Reboot { .. } => StepReason::TakesEffect,
            Step::UnderLocks(_) | Step::ReleaseLocks { .. } => StepReason::Unused,
        }
    }

    fn explain_locked(
        &mut self,
        service: &ServiceKey,
        step: &LockedStep,
        state: &CurrentState,
    ) -> StepReason {
        let subject = Subject::Service(service.clone());
        match step {
            LockedStep::Stop { .. } => StepReason::NotToRun,
            LockedStep::Kill {
                container, reason, ..
            } => {
                let reason = self.unless_for_its_key(*reason, container, state);
                self.went(subject, reason)
            }
            LockedStep::HandOver { old, reason, .. } => {
                self.unless_for_its_key(*reason, old, state)
            }
            LockedStep::Rename { .. } => StepReason::ReleaseChanged,
            LockedStep::RemoveImage { .. } => StepReason::MakesRoom,
            LockedStep::Start(_) => self.came_of(&subject),
        }
    }

    fn went(&mut self, subject: Subject, reason: StepReason) -> StepReason {
        self.gone.insert(subject, reason);
        reason
    }

    fn came_of(&self, subject: &Subject) -> StepReason {
        let reason = self.gone.get(subject).copied();
        reason.unwrap_or(StepReason::Missing)
    }

    /// Returns `reason`, or [`StepReason::KeyReplaced`] if the configuration of `container` differs only in the
    /// service's key.
    fn unless_for_its_key(
        &self,
        reason: StepReason,
        container: &ContainerRef,
        state: &CurrentState,
    ) -> StepReason {
        let is_for_its_key = |held: &CurrentService| {
            held.container == container.id && self.replaced_keys.concerns(held)
        };
        if reason == StepReason::ConfigurationChanged && state.services.iter().any(is_for_its_key) {
            StepReason::KeyReplaced
        } else {
            reason
        }
    }
}
