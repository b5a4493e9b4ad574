//! The reason for each step of a forecast: the planner gives the reason for removals, and whatever is created again
//! afterwards has the same reason.

use std::collections::BTreeMap;

use device_types::plan::StepReason;
use model::ServiceKey;

use super::AnyStep;
use crate::step::{LockedStep, Step};
use crate::subject::Subject;

/// Causes of steps that the state before them does not show.
#[derive(Debug, Default)]
pub(super) struct Causes {
    /// The reasons for removals, by subject, for what is created again.
    gone: BTreeMap<Subject, StepReason>,
}

impl Causes {
    pub(super) fn explain(&mut self, step: &AnyStep) -> StepReason {
        match step {
            AnyStep::Locked(service, step) => self.explain_locked(service, step),
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

    fn explain_locked(&mut self, service: &ServiceKey, step: &LockedStep) -> StepReason {
        let subject = Subject::Service(service.clone());
        match step {
            LockedStep::Stop { .. } => StepReason::NotToRun,
            LockedStep::Kill { reason, .. } => self.went(subject, *reason),
            LockedStep::HandOver { reason, .. } => *reason,
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
}
