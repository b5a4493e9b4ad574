//! Releases on trial: whether the release that an app was updated to becomes healthy in time, and which release
//! replaces it if not (docs/spec/device.md#release-health). Decides from the state and the time that the loop passes
//! in; the loop observes, queries the plugins, and writes the records.

mod record;
mod trial;

use std::collections::{BTreeMap, BTreeSet};

use model::{
    AppId, AppUuid, Commit, DesiredApp, DesiredState, ImageRef, RejectedRelease, ServiceName,
};
use tokio::time::Instant;

use crate::ReleaseVerdict;

pub(crate) use record::ReleaseRecord;
pub(crate) use trial::{AppObservation, TrialRules};

use trial::{Judgement, Trial};

/// The maximum number of supervisor starts during one trial. A release that crashes the device would otherwise never
/// reach the end of its trial.
const MOST_STARTS: u32 = 3;

/// Everything that is known of the releases of all apps.
#[derive(Debug, Default)]
pub(crate) struct ReleaseTrials {
    records: BTreeMap<AppUuid, ReleaseRecord>,
    trials: BTreeMap<AppUuid, Trial>,
    /// The apps as in the target whose releases are not tried again.
    displaced: BTreeMap<AppUuid, DesiredApp>,
    /// Records that are not stored yet.
    unwritten: BTreeSet<AppUuid>,
    /// Records that are being written: those of one app are written one after another.
    writing: BTreeSet<AppUuid>,
}

/// The next step of a trial.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum TrialStep {
    /// Query the plugins.
    AskGates,
    /// Go back to this release, once the record is written.
    Reject {
        rejected: RejectedRelease,
        back_to: Option<Commit>,
    },
    /// The release is healthy.
    Accept,
    /// Report that it is not healthy, and that there is no other.
    Complain(RejectedRelease),
}

impl ReleaseTrials {
    /// Returns the state from the stored records when the supervisor starts.
    pub(crate) fn new(records: BTreeMap<AppUuid, ReleaseRecord>) -> Self {
        let mut trials = ReleaseTrials {
            records,
            ..ReleaseTrials::default()
        };
        for (app, record) in &mut trials.records {
            if record.count_start() {
                trials.unwritten.insert(app.clone());
            }
        }
        trials
    }

    /// Replaces releases that were not healthy with the last healthy release of the app.
    pub(crate) fn substitute(&mut self, desired: &mut DesiredState, secrets: &[String]) {
        self.displaced.clear();
        for uuid in desired.apps.keys().cloned().collect::<Vec<_>>() {
            self.go_back(&uuid, desired, secrets);
        }
    }

    /// Substitutes nothing: the target's apps are not those of the cloud.
    pub(crate) fn substitute_none(&mut self) {
        self.displaced.clear();
    }

    /// Like [`Self::substitute`], for one app; returns whether it was replaced. `secrets` are the variables with the
    /// API keys of services, which may have been replaced since.
    pub(crate) fn go_back(
        &mut self,
        uuid: &AppUuid,
        desired: &mut DesiredState,
        secrets: &[String],
    ) -> bool {
        let Some(app) = desired.apps.get_mut(uuid) else {
            return false;
        };
        let Some(mut healthy) = self.healthy_instead_of(app) else {
            return false;
        };
        for (name, service) in &mut healthy.services {
            let Some(target_service) = app.services.get(name) else {
                continue;
            };
            for variable in secrets {
                let held = service.config.environment.get_mut(variable);
                if let (Some(held), Some(key)) =
                    (held, target_service.config.environment.get(variable))
                {
                    held.clone_from(key);
                }
            }
        }
        let displaced = std::mem::replace(app, healthy);
        self.displaced.insert(uuid.clone(), displaced);
        true
    }

    /// Returns the healthy release that runs instead of that of `app`, if that was not healthy.
    fn healthy_instead_of(&self, app: &DesiredApp) -> Option<DesiredApp> {
        let commit = app.commit.as_ref()?;
        let record = self.records.get(&app.uuid)?;
        let is_rejected = record.has_rejected(commit);
        let healthy = record.healthy.as_ref()?;
        let is_other = healthy.commit.as_ref() != Some(commit);
        let is_applied = !app.not_ours && !app.rejected;
        (is_rejected && is_other && is_applied).then(|| healthy.clone())
    }

    /// Returns the release of the target that was not healthy, and is not tried again.
    pub(crate) fn rejected_release(&self, app: &AppUuid) -> Option<&RejectedRelease> {
        let commit = self.displaced.get(app)?.commit.as_ref()?;
        let rejected = &self.records.get(app)?.rejected;
        rejected.iter().rev().find(|it| it.commit == *commit)
    }

    /// Returns the rejected releases of all apps.
    pub(crate) fn rejected_releases(&self) -> BTreeMap<AppUuid, RejectedRelease> {
        let apps = self.displaced.keys();
        apps.filter_map(|app| Some((app.clone(), self.rejected_release(app)?.clone())))
            .collect()
    }

    /// Forgets which releases were not healthy, and restores those of the target, since somebody wants them to be tried
    /// again. Returns whether there are any.
    pub(crate) fn try_again(&mut self, desired: &mut DesiredState) -> bool {
        for (uuid, record) in &mut self.records {
            if !record.rejected.is_empty() {
                record.rejected.clear();
                self.unwritten.insert(uuid.clone());
            }
        }
        let displaced = std::mem::take(&mut self.displaced);
        let any = !displaced.is_empty();
        desired.apps.extend(displaced);
        any
    }

    /// Forgets apps that are no longer in the target.
    pub(crate) fn retain(&mut self, desired: &DesiredState) {
        self.trials.retain(|app, _| desired.apps.contains_key(app));
        let gone = self.records.keys();
        let gone: Vec<_> = gone
            .filter(|app| !desired.apps.contains_key(*app))
            .cloned()
            .collect();
        for app in gone {
            self.records.remove(&app);
            self.unwritten.insert(app);
        }
    }

    /// Examines one app. Without rules, every release counts as healthy once all of it runs.
    pub(crate) fn look(
        &mut self,
        app: &DesiredApp,
        seen: &AppObservation,
        rules: Option<TrialRules>,
        now: Instant,
    ) -> Option<TrialStep> {
        let commit = app.commit.as_ref()?;
        let record = self.records.entry(app.uuid.clone()).or_default();
        if record.has_rejected(commit) {
            // The record of the rejection is being written, or there is no release to go back to.
            return None;
        }
        let healthy = record.healthy.as_ref();
        let is_healthy = healthy.is_some_and(|healthy| healthy.commit.as_ref() == Some(commit));
        if is_healthy || rules.is_none() {
            if seen.is_whole && (record.is_on_trial() || healthy != Some(app)) {
                self.accept(app);
            }
            return None;
        }
        let rules = rules?;
        if !seen.has_begun && !seen.is_whole {
            return None;
        }
        let trial = self.trials.get_mut(&app.uuid);
        let trial = match trial.filter(|trial| trial.commit == *commit) {
            Some(trial) => trial,
            None => {
                if record.begin_trial(commit) {
                    self.unwritten.insert(app.uuid.clone());
                }
                let trial = Trial::new(commit.clone(), now);
                self.trials.insert(app.uuid.clone(), trial);
                self.trials.get_mut(&app.uuid)?
            }
        };
        let starts = record.starts();
        if starts > MOST_STARTS {
            trial.reason = format!(
                "the supervisor has started {starts} times since its services began to run"
            );
            return self.reject(&app.uuid);
        }
        match trial.judge(seen, rules, now) {
            Judgement::Wait => None,
            Judgement::Ask => {
                trial.begin_query();
                Some(TrialStep::AskGates)
            }
            Judgement::Healthy => {
                self.accept(app);
                Some(TrialStep::Accept)
            }
            Judgement::Ill => self.reject(&app.uuid),
        }
    }

    /// Records the plugins' verdict on a release.
    pub(crate) fn answered(
        &mut self,
        app: &AppUuid,
        commit: &Commit,
        verdict: ReleaseVerdict,
        now: Instant,
    ) {
        let trial = self.trials.get_mut(app);
        if let Some(trial) = trial.filter(|trial| trial.commit == *commit) {
            trial.answered(verdict, now);
        }
    }

    fn accept(&mut self, app: &DesiredApp) {
        let record = self.records.entry(app.uuid.clone()).or_default();
        record.accept(app);
        self.trials.remove(&app.uuid);
        self.unwritten.insert(app.uuid.clone());
    }

    /// Ends a failed trial.
    fn reject(&mut self, app: &AppUuid) -> Option<TrialStep> {
        let record = self.records.get_mut(app)?;
        let trial = self.trials.get_mut(app)?;
        let rejected = RejectedRelease {
            commit: trial.commit.clone(),
            reason: trial.reason.clone(),
        };
        let Some(healthy) = &record.healthy else {
            // It continues, and may still become healthy.
            let is_first = !std::mem::replace(&mut trial.is_overdue, true);
            return is_first.then_some(TrialStep::Complain(rejected));
        };
        let back_to = healthy.commit.clone();
        record.reject(rejected.clone());
        self.trials.remove(app);
        self.unwritten.insert(app.clone());
        Some(TrialStep::Reject { rejected, back_to })
    }

    /// Returns the images that may be needed to go back while releases are on trial.
    pub(crate) fn images_to_keep(&self) -> BTreeSet<ImageRef> {
        let services = self
            .healthy_on_trial()
            .flat_map(|app| app.services.values());
        services
            .map(|service| service.config.image.clone())
            .collect()
    }

    /// Returns the services that may be needed to go back while releases are on trial.
    pub(crate) fn services_to_keep(&self) -> impl Iterator<Item = (AppId, ServiceName)> {
        self.healthy_on_trial()
            .flat_map(|app| app.services.keys().map(|name| (app.id, name.clone())))
    }

    fn healthy_on_trial(&self) -> impl Iterator<Item = &DesiredApp> {
        // Also between the end of a trial and the writing of its record, after which the device goes back.
        let is_open = |app| self.unwritten.contains(app) || self.writing.contains(app);
        let records = self.records.iter();
        records
            .filter(move |(app, record)| record.is_on_trial() || is_open(*app))
            .filter_map(|(_, record)| record.healthy.as_ref())
    }

    /// Returns until when the release of an app is on trial, and why it does not count as healthy yet.
    pub(crate) fn on_trial(&self, app: &AppUuid, rules: TrialRules) -> Option<(Instant, String)> {
        let trial = self.trials.get(app)?;
        Some(trial.describe(rules))
    }

    /// Returns the times at which to examine the apps again even if nothing has happened.
    pub(crate) fn times(&self, rules: Option<TrialRules>) -> impl Iterator<Item = Instant> {
        self.trials
            .values()
            .flat_map(move |trial| trial.times(rules))
    }

    /// Returns the current records that must be written now; an absent record is deleted.
    pub(crate) fn take_unwritten(&mut self) -> Vec<(AppUuid, Option<ReleaseRecord>)> {
        let now = self.unwritten.difference(&self.writing);
        let now: Vec<_> = now.cloned().collect();
        for app in &now {
            self.unwritten.remove(app);
            self.writing.insert(app.clone());
        }
        let records = now.into_iter().map(|app| {
            let record = self.records.get(&app).cloned();
            (app, record)
        });
        records.collect()
    }

    /// Records that the store has the record that was taken last.
    pub(crate) fn written(&mut self, app: &AppUuid) {
        self.writing.remove(app);
    }

    /// Records that the store does not have the record that was taken last.
    pub(crate) fn write_again(&mut self, app: AppUuid) {
        self.writing.remove(&app);
        self.unwritten.insert(app);
    }
}

#[cfg(test)]
mod tests;
