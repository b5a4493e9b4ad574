//! All steps from now until the target is reached, computed by applying successive plans to a model of the observed
//! state. Shown to people who want to know what is about to happen.
//!
//! The loop never follows a forecast: it plans again from what it observes after each step. In a forecast every step
//! succeeds, steps held back after a failure are tried, and an image whose engine is not known is assumed to be for the
//! default one.

mod model;
mod why;

use std::collections::{BTreeMap, BTreeSet};

use ::model::{AppId, AppUuid, ContainerId, DesiredState, ServiceKey, ServiceName};
use device_types::plan::Blocker;
use device_types::plan::StepReason;

use self::model::DeviceModel;
use crate::blocked_subject::BlockedSubject;
use crate::component::has_component;
use crate::current::CurrentState;
use crate::planner::plan;
use crate::step::{LockedStep, Step};
use crate::subject::Subject;

/// More than any target of an allowed size needs; it still ends the loop if two rules contradict each other.
const MAX_PLANS: usize = 500;
/// The maximum number of steps that is returned.
const MAX_STEPS: usize = 20_000;

/// All steps that are about to be taken.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Forecast {
    /// The steps in order; those of one stage may run in parallel.
    pub steps: Vec<ForecastStep>,
    /// What remains blocked after all steps.
    pub stuck: Vec<BlockedSubject>,
    /// The services whose update locks are taken, by app.
    pub locked: BTreeMap<AppUuid, (AppId, BTreeSet<ServiceName>)>,
    /// Whether steps are missing: a limit was reached, or a step could not be applied to the model.
    pub cut_short: bool,
}

/// A future step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ForecastStep {
    /// The number of the stage, from 1 without gaps.
    pub stage: usize,
    /// The app of the step; absent if it belongs to none or to several.
    pub app: Option<AppUuid>,
    /// The step, and whether it needs update locks.
    pub step: AnyStep,
    /// The cause of the step, in the target or on the device.
    pub reason: StepReason,
    /// Whether the step has begun.
    pub in_flight: bool,
    /// Everything that earlier plans report as its blockers.
    pub waits_for: Vec<Blocker>,
}

/// A step, with or without locks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AnyStep {
    /// A step that needs no app's locks. Never [`Step::UnderLocks`] or [`Step::ReleaseLocks`].
    Free(Step),
    /// A step that needs the update locks of its app.
    Locked(ServiceKey, LockedStep),
}

impl ForecastStep {
    /// Returns the subject of the step.
    #[must_use]
    pub fn subject(&self) -> Subject {
        match &self.step {
            AnyStep::Free(step) => step.subject(),
            AnyStep::Locked(service, _) => Subject::Service(service.clone()),
        }
    }
}

/// Computes all steps from `current` to `desired`. Pure, like [`plan()`].
#[must_use]
pub fn forecast(current: &CurrentState, desired: &DesiredState) -> Forecast {
    let mut walk = ForecastWalk {
        desired,
        begun: &current.busy,
        model: DeviceModel::from_state(current),
        waits: BTreeMap::new(),
        causes: why::Causes::default(),
        forecast: Forecast::default(),
    };
    // The forecast includes the next update.
    walk.model.state.replaced_keys.begin_update();
    let mut stage = 1;
    for _ in 0..MAX_PLANS {
        let next = plan(&walk.model.state, desired);
        let ends = next.steps.is_empty() && !walk.model.end_removals() && !walk.model.end_purges();
        if ends {
            walk.forecast.stuck = next.waiting_on;
            return walk.forecast;
        }
        let before = walk.forecast.steps.len();
        for step in next.steps {
            if walk.forecast.steps.len() >= MAX_STEPS || !walk.take(stage, step) {
                walk.forecast.cut_short = true;
                return walk.forecast;
            }
        }
        stage += usize::from(walk.forecast.steps.len() > before);
        // A subject that has no step yet waits for these blockers; they are shown at its later steps.
        for BlockedSubject { subject, reason } in next.waiting_on {
            let reasons = walk.waits.entry(subject).or_default();
            if !reasons.contains(&reason) {
                reasons.push(reason);
            }
        }
    }
    walk.forecast.cut_short = true;
    walk.forecast
}

struct ForecastWalk<'a> {
    desired: &'a DesiredState,
    begun: &'a BTreeSet<Subject>,
    model: DeviceModel,
    /// The blockers reported for each subject so far.
    waits: BTreeMap<Subject, Vec<Blocker>>,
    causes: why::Causes,
    forecast: Forecast,
}

impl ForecastWalk<'_> {
    /// Records a step and applies it to the model; returns `false` if it cannot be applied.
    fn take(&mut self, stage: usize, step: Step) -> bool {
        match step {
            Step::UnderLocks(locked) => {
                self.model.state.locks.insert(locked.app.clone());
                let (_, services) = self
                    .forecast
                    .locked
                    .entry(locked.app.clone())
                    .or_insert((locked.app_id, BTreeSet::new()));
                services.extend(locked.services);
                for work in locked.work {
                    for step in work.steps {
                        self.note(stage, AnyStep::Locked(work.service.clone(), step.clone()));
                        if !self.model.under_locks(step) {
                            return false;
                        }
                    }
                }
                true
            }
            Step::ReleaseLocks { app } => {
                self.model.state.locks.remove(&app);
                true
            }
            step => {
                self.note(stage, AnyStep::Free(step.clone()));
                self.model.take(step)
            }
        }
    }

    fn note(&mut self, stage: usize, step: AnyStep) {
        let reason = self.causes.explain(&step);
        let app = self.app_of(&step);
        let mut foreseen = ForecastStep {
            stage,
            app,
            step,
            reason,
            in_flight: false,
            waits_for: Vec::new(),
        };
        let subject = foreseen.subject();
        // Several steps concern the operating system, and only one of them is under way at a time.
        let is_later = subject == Subject::Os
            && self
                .forecast
                .steps
                .iter()
                .any(|step| step.subject() == subject);
        foreseen.in_flight = self.begun.contains(&subject) && !is_later;
        foreseen.waits_for = self.waits.get(&subject).cloned().unwrap_or_default();
        self.forecast.steps.push(foreseen);
    }

    fn app_of(&self, step: &AnyStep) -> Option<AppUuid> {
        let state = &self.model.state;
        match step {
            AnyStep::Locked(service, _)
            | AnyStep::Free(
                Step::RemoveDead { service, .. } | Step::StartExisting { service, .. },
            ) => Some(service.app.clone()),
            AnyStep::Free(Step::RecordCommit { app, .. } | Step::ForgetCommit { app }) => {
                Some(app.clone())
            }
            AnyStep::Free(Step::CreateComponent { component, .. }) => {
                let (kind, name) = (component.kind(), component.engine_name());
                let mut apps = self.desired.apps.values();
                let owner = apps.find(|app| has_component(app, kind, name));
                owner.map(|app| app.uuid.clone())
            }
            AnyStep::Free(Step::RemoveComponent {
                engine, kind, name, ..
            }) => state.component(*kind, *engine, name)?.app.clone(),
            AnyStep::Free(
                Step::PullImage { .. }
                | Step::RemoveImage { .. }
                | Step::Configure { .. }
                | Step::StageOs { .. }
                | Step::CommitOs { .. }
                | Step::RollBackOs { .. }
                | Step::Reboot { .. }
                | Step::UnderLocks(_)
                | Step::ReleaseLocks { .. },
            ) => None,
        }
    }
}

/// Returns whether this is the placeholder for a container that does not exist yet.
#[must_use]
pub fn is_foreseen(container: &ContainerId) -> bool {
    container.as_str().starts_with(model::FORESEEN)
}
