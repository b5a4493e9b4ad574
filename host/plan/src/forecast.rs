//! What all plans from now until the target is reached would do, found by doing it to a model of what was
//! observed: for a person who asks what is about to happen.
//!
//! The loop never follows a forecast: it plans anew from what it observes after each step. Here every step
//! succeeds, what is held back after a failure is tried, and the registry says of an image whose engine is
//! not known that it is for the default one.

mod model;
mod why;

use std::collections::{BTreeMap, BTreeSet};

use ::model::{
    AppId, AppUuid, ContainerId, DesiredState, DesiredVolume, EngineKind, ServiceKey, ServiceName,
};

use self::model::Model;
pub use self::why::Why;
use crate::{CurrentState, LockedStep, Reason, Step, Subject, WaitingOn, plan};

/// More than any target of an allowed size takes; an end all the same, should two rules disagree.
const MAX_PLANS: usize = 500;
/// What a caller is shown at most.
const MAX_STEPS: usize = 20_000;

/// Everything that is about to be done.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Forecast {
    /// In order; those of one stage may be taken side by side.
    pub steps: Vec<Foreseen>,
    /// What none of the steps leads to.
    pub stuck: Vec<WaitingOn>,
    /// The services whose update locks are taken, by app.
    pub locked: BTreeMap<AppUuid, (AppId, BTreeSet<ServiceName>)>,
    /// There is more than fits.
    pub cut_short: bool,
}

/// One step to come.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Foreseen {
    /// From 1, without a gap.
    pub stage: usize,
    /// Whose it is; missing for what is no app's, or of several.
    pub app: Option<AppUuid>,
    /// The step, and whether it needs update locks.
    pub deed: Deed,
    /// What in the target or on the device leads to it.
    pub why: Why,
    /// It has been begun.
    pub in_flight: bool,
    /// Everything that earlier plans say it waits for.
    pub waits_for: Vec<Reason>,
}

/// What is done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Deed {
    /// Needs the locks of no one app. Never [`Step::UnderLocks`] nor [`Step::ReleaseLocks`].
    Free(Step),
    /// Needs the update locks of its app.
    Locked(ServiceKey, LockedStep),
}

impl Foreseen {
    /// What it is about.
    #[must_use]
    pub fn subject(&self) -> Subject {
        match &self.deed {
            Deed::Free(step) => step.subject(),
            Deed::Locked(service, _) => Subject::Service(service.clone()),
        }
    }
}

/// Foresees what leads from `current` to `desired`. Pure, as [`plan()`] is.
#[must_use]
pub fn forecast(current: &CurrentState, desired: &DesiredState) -> Forecast {
    let mut walk = Walk {
        desired,
        begun: &current.busy,
        model: Model::of(current),
        waits: BTreeMap::new(),
        causes: why::Causes::default(),
        forecast: Forecast::default(),
    };
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
        // What it has no step for now is what later steps wait for.
        for WaitingOn { subject, reason } in next.waiting_on {
            let reasons = walk.waits.entry(subject).or_default();
            if !reasons.contains(&reason) {
                reasons.push(reason);
            }
        }
    }
    walk.forecast.cut_short = true;
    walk.forecast
}

struct Walk<'a> {
    desired: &'a DesiredState,
    begun: &'a BTreeSet<Subject>,
    model: Model,
    /// What each subject was said to wait for so far.
    waits: BTreeMap<Subject, Vec<Reason>>,
    causes: why::Causes,
    forecast: Forecast,
}

impl Walk<'_> {
    /// Notes a step and does it to the model; `false` where that cannot be done.
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
                        self.note(stage, Deed::Locked(work.service.clone(), step.clone()));
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
                self.note(stage, Deed::Free(step.clone()));
                self.model.take(step)
            }
        }
    }

    fn note(&mut self, stage: usize, deed: Deed) {
        let why = self.causes.of(&deed, &self.model.state, self.desired);
        let app = self.app_of(&deed);
        let mut foreseen = Foreseen {
            stage,
            app,
            deed,
            why,
            in_flight: false,
            waits_for: Vec::new(),
        };
        let subject = foreseen.subject();
        foreseen.in_flight = self.begun.contains(&subject);
        foreseen.waits_for = self.waits.get(&subject).cloned().unwrap_or_default();
        self.forecast.steps.push(foreseen);
    }

    fn app_of(&self, deed: &Deed) -> Option<AppUuid> {
        let state = &self.model.state;
        match deed {
            Deed::Locked(service, _)
            | Deed::Free(Step::RemoveDead { service, .. } | Step::StartExisting { service, .. }) => {
                Some(service.app.clone())
            }
            Deed::Free(Step::RecordCommit { app, .. } | Step::ForgetCommit { app }) => {
                Some(app.clone())
            }
            Deed::Free(Step::CreateVolume { volume: made, .. }) => self.owner_of_volume(made),
            Deed::Free(Step::CreateNetwork { network, .. }) => {
                let mut apps = self.desired.apps.values();
                let owner = apps.find(|app| {
                    let mut networks = app.networks.values();
                    networks.any(|wanted| wanted.engine_name == network.engine_name)
                });
                owner.map(|app| app.uuid.clone())
            }
            Deed::Free(Step::RemoveVolume { engine, name }) => {
                owner_of(&state.volumes, *engine, name)
            }
            Deed::Free(Step::RemoveNetwork { engine, name }) => {
                owner_of(&state.networks, *engine, name)
            }
            Deed::Free(
                Step::PullImage { .. }
                | Step::RemoveImage { .. }
                | Step::Configure { .. }
                | Step::Reboot { .. }
                | Step::UnderLocks(_)
                | Step::ReleaseLocks { .. },
            ) => None,
        }
    }

    fn owner_of_volume(&self, volume: &DesiredVolume) -> Option<AppUuid> {
        let mut apps = self.desired.apps.values();
        let owner = apps.find(|app| {
            let mut volumes = app.volumes.values();
            volumes.any(|wanted| wanted.engine_name == volume.engine_name)
        });
        owner.map(|app| app.uuid.clone())
    }
}

fn owner_of(held: &[crate::CurrentComponent], engine: EngineKind, name: &str) -> Option<AppUuid> {
    let found = held.iter().find(|c| c.engine == engine && c.name == name)?;
    found.app.clone()
}

/// The name of a container that is not there yet.
#[must_use]
pub fn is_foreseen(container: &ContainerId) -> bool {
    container.as_str().starts_with(model::FORESEEN)
}
