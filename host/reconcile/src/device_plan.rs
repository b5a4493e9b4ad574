//! What is about to happen and what delays it: the loop copies its state, and the forecast ([`plan::forecast()`]) is
//! computed in the caller's task. A request changes nothing.

mod step;

use std::collections::{BTreeMap, BTreeSet};

use device_types::plan::{
    BlockReason, Blocker, DevicePlan, PlanState, SignedTargets, StepReason, UnplannedChange,
};
use model::{AppId, AppUuid, DesiredState, ImageRef, ServiceName};
use plan::{AnyStep, CurrentState, Failure, ForecastStep, OsVerdict, Step, Subject, forecast};

use crate::{Locks, SigningState};

/// The state of the loop at one moment.
pub(crate) struct LoopSnapshot {
    pub state: PlanState,
    pub current: CurrentState,
    pub desired: DesiredState,
    /// Apps whose users' locks are overridden.
    pub overridden: BTreeSet<AppUuid>,
    pub going_down: bool,
    pub progress: BTreeMap<ImageRef, u8>,
    /// Releases that are on trial, or were not healthy.
    pub blocked_releases: BTreeMap<AppUuid, Blocker>,
    /// Why the version of the operating system in the target does not run, if no step leads to it.
    pub blocked_os: Option<Blocker>,
    /// The progress of the installation of a version, in percent.
    pub os_progress: Option<u8>,
}

impl LoopSnapshot {
    /// Forecasts the next steps. It reads the lock files, so it must run on a thread that may block. `cloud_apps` are
    /// the apps of the cloud's target.
    pub(crate) fn device_plan(
        self,
        locks: &Locks,
        cloud_apps: &[(AppId, AppUuid)],
        signing: &SigningState,
    ) -> DevicePlan {
        let forecast = match self.state {
            PlanState::Settled | PlanState::Applying => forecast(&self.current, &self.desired),
            PlanState::Looking | PlanState::NoTarget | PlanState::LeavingLocalMode => {
                plan::Forecast::default()
            }
        };
        let mut user_locks: BTreeMap<&AppUuid, Vec<Blocker>> = BTreeMap::new();
        for (app, (id, services)) in &forecast.locked {
            if !self.overridden.contains(app) {
                user_locks.insert(app, held_locks(locks, *id, services));
            }
        }
        let steps = (1..).zip(&forecast.steps).map(|(number, step)| {
            let mut blockers = Vec::new();
            if !step.in_flight {
                let held = match &step.step {
                    AnyStep::Free(Step::Reboot { .. }) => self.locks_of_all(locks),
                    _ => {
                        let app = step.app.as_ref();
                        app.and_then(|app| user_locks.get(app).cloned())
                            .unwrap_or_default()
                    }
                };
                blockers = self.blockers(step, held);
            }
            self.describe(number, step, blockers)
        });
        let steps: Vec<_> = steps.collect();
        let mut unplanned = self.left_alone(cloud_apps);
        unplanned.extend(forecast.stuck.iter().map(|waiting| {
            let (app, service) = match &waiting.subject {
                Subject::Service(key) => (Some(&key.app), Some(&key.service)),
                Subject::App(app) | Subject::Locks(app) => (Some(app), None),
                _ => (None, None),
            };
            let failed = self.current.failed.get(&waiting.subject);
            let blocker = failed.map_or_else(|| waiting.reason.clone(), Failure::blocker);
            let app = app.and_then(|app| Some((self.app_id(app)?, app)));
            unplanned_of(app, service, blocker)
        }));
        let is_settled =
            steps.is_empty() && forecast.stuck.is_empty() && self.current.busy.is_empty();
        DevicePlan {
            state: match self.state {
                PlanState::Settled if !is_settled => PlanState::Applying,
                state => state,
            },
            local_mode: self.current.local_mode,
            steps,
            unplanned,
            cut_short: forecast.cut_short,
            signed_targets: signing.is_required.then(|| {
                let refused = signing.refused.as_ref();
                SignedTargets {
                    refused: refused.map(|refused| refused.reasons.clone()),
                }
            }),
        }
    }

    fn blockers(&self, step: &ForecastStep, user_locks: Vec<Blocker>) -> Vec<Blocker> {
        let failed = |subject: &Subject| self.current.failed.get(subject).map(Failure::blocker);
        let mut blockers = step.waits_for.clone();
        match &step.step {
            AnyStep::Free(Step::Reboot { activates, .. }) => {
                blockers.extend(user_locks);
                let is_of_os = activates.is_some();
                blockers.extend(failed(&Subject::Os).filter(|_| is_of_os));
            }
            AnyStep::Free(Step::CommitOs { version }) => {
                if let OsVerdict::Pending { until, reason } = &self.current.os.verdict
                    && step.stage == 1
                {
                    blockers.push(Blocker::OsOnTrial {
                        version: version.clone(),
                        until: *until,
                        reason: reason.clone(),
                    });
                }
            }
            AnyStep::Free(_) => {}
            AnyStep::Locked(service, _) => {
                blockers.extend(user_locks);
                blockers.extend(failed(&Subject::Locks(service.app.clone())));
            }
        }
        blockers.extend(failed(&step.subject()));
        if step.reason == StepReason::KeyReplaced {
            blockers.push(Blocker::NextUpdate);
        }
        if step.stage > 1 && blockers.is_empty() {
            blockers.push(Blocker::EarlierSteps);
        }
        if self.going_down {
            blockers.push(Blocker::GoingDown);
        }
        blockers
    }

    /// Returns the locks that users hold on any app: a reboot needs them all.
    fn locks_of_all(&self, locks: &Locks) -> Vec<Blocker> {
        let mut apps: BTreeMap<(AppId, &AppUuid), BTreeSet<ServiceName>> = BTreeMap::new();
        for held in &self.current.services {
            let services = apps.entry((held.app_id, &held.key.app)).or_default();
            services.insert(held.key.service.clone());
        }
        apps.into_iter()
            .filter(|((_, uuid), _)| !self.overridden.contains(*uuid))
            .flat_map(|((app, _), services)| held_locks(locks, app, &services))
            .collect()
    }

    fn app_id(&self, app: &AppUuid) -> Option<AppId> {
        let desired = self.desired.apps.get(app).map(|app| app.id);
        let mut services = self.current.services.iter();
        desired.or_else(|| Some(services.find(|held| held.key.app == *app)?.app_id))
    }

    fn left_alone(&self, cloud_apps: &[(AppId, AppUuid)]) -> Vec<UnplannedChange> {
        let os = self.blocked_os.clone().into_iter();
        let mut left: Vec<_> = os
            .map(|blocker| unplanned_of(None, None, blocker))
            .collect();
        for app in self.desired.apps.values() {
            let blocker = match (app.not_ours, app.rejected) {
                (true, _) => Blocker::NotOurs,
                (_, true) => Blocker::ReleaseRejected,
                _ => match self.blocked_releases.get(&app.uuid) {
                    Some(blocker) => blocker.clone(),
                    None => continue,
                },
            };
            left.push(unplanned_of(Some((app.id, &app.uuid)), None, blocker));
        }
        if self.current.local_mode {
            let hidden = cloud_apps
                .iter()
                .filter(|(_, uuid)| !self.desired.apps.contains_key(uuid));
            left.extend(
                hidden.map(|(id, uuid)| unplanned_of(Some((*id, uuid)), None, Blocker::LocalMode)),
            );
        }
        let stopped = self
            .current
            .services
            .iter()
            .filter(|held| self.current.held.contains(&held.container));
        left.extend(stopped.map(|held| {
            let app = Some((held.app_id, &held.key.app));
            unplanned_of(app, Some(&held.key.service), Blocker::StoppedByUser)
        }));
        left
    }
}

fn held_locks(locks: &Locks, app_id: AppId, services: &BTreeSet<ServiceName>) -> Vec<Blocker> {
    let services = locks.locked_by_users(app_id, services).into_iter();
    services
        .map(|service| Blocker::Lock { app_id, service })
        .collect()
}

fn unplanned_of(
    app: Option<(AppId, &AppUuid)>,
    service: Option<&ServiceName>,
    blocker: Blocker,
) -> UnplannedChange {
    UnplannedChange {
        app_id: app.map(|(id, _)| id),
        app_uuid: app.map(|(_, uuid)| uuid.clone()),
        service: service.cloned(),
        blocked_by: vec![BlockReason::from(blocker)],
    }
}
