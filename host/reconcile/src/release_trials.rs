//! Releases on trial: whether the release that an app was updated to becomes healthy in time, and which release
//! replaces it if not (docs/spec/device.md#release-health). Decides from the state and the time that the loop passes
//! in; the loop observes, queries the plugins, and writes the records.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use model::{
    AppId, AppUuid, Commit, ContainerHealth, ContainerState, CurrentService, DesiredApp,
    DesiredState, ImageRef, RejectedRelease, ServiceName,
};
use serde::{Deserialize, Serialize};
use tokio::time::Instant;

use crate::ReleaseVerdict;

/// How long a release must stay healthy without a break before it counts as healthy. A service that exits and is
/// restarted looks healthy between two of its runs.
const STEADY: Duration = Duration::from_secs(10);
/// The maximum number of supervisor starts during one trial. A release that crashes the device would otherwise never
/// reach the end of its trial.
const MOST_STARTS: u32 = 3;
/// The maximum number of releases of an app that are remembered as not healthy; the newest are kept.
const MOST_REJECTED: usize = 8;

/// The stored record of an app's releases, under the app's uuid.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ReleaseRecord {
    /// The app at the time its release was last found healthy: the state to which the device returns.
    #[serde(default)]
    healthy: Option<DesiredApp>,
    /// Releases that were not healthy, the latest at the end.
    #[serde(default)]
    rejected: Vec<RejectedRelease>,
    #[serde(default)]
    trial: Option<StoredTrial>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct StoredTrial {
    commit: Commit,
    /// The number of supervisor starts since the trial began.
    starts: u32,
}

/// A release that was installed a short while ago.
#[derive(Debug)]
struct Trial {
    commit: Commit,
    /// The start of its trial.
    began: Instant,
    /// Whether its time is stopped at the moment.
    is_paused: bool,
    steady_since: Option<Instant>,
    gate: GateState,
    /// The reason why it is not healthy yet.
    reason: String,
    /// Whether its time is over with no release to go back to, and this was reported.
    is_overdue: bool,
}

/// The plugins' verdict on a release.
#[derive(Debug, PartialEq, Eq)]
enum GateState {
    NotAsked,
    Asked,
    /// They are queried again at this time.
    AskAt(Instant),
    Passed,
    /// A plugin refuses it, for this reason.
    Refused(String),
}

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

/// The requirements for a new release.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TrialRules {
    /// The time in which a release must become healthy.
    pub time: Duration,
    /// Whether plugins are queried.
    pub has_gates: bool,
}

/// The observed state of an app.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct AppObservation {
    /// Whether a container of the release exists.
    pub has_begun: bool,
    /// Whether the whole release matches the target.
    pub is_whole: bool,
    /// Whether images are pulled for it, or an action of the API is under way: its time is stopped then.
    pub is_busy: bool,
    /// Whether all services run and are healthy; otherwise the problem, in one sentence.
    pub services: Result<(), String>,
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
            if let Some(trial) = &mut record.trial {
                trial.starts = trial.starts.saturating_add(1);
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
        let is_rejected = record.rejected.iter().any(|it| it.commit == *commit);
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
        if record.rejected.iter().any(|it| it.commit == *commit) {
            // The record of the rejection is being written, or there is no release to go back to.
            return None;
        }
        let healthy = record.healthy.as_ref();
        let is_healthy = healthy.is_some_and(|healthy| healthy.commit.as_ref() == Some(commit));
        if is_healthy || rules.is_none() {
            if seen.is_whole && (record.trial.is_some() || healthy != Some(app)) {
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
                let stored = record.trial.as_ref();
                if stored.is_none_or(|stored| stored.commit != *commit) {
                    record.trial = Some(StoredTrial {
                        commit: commit.clone(),
                        starts: 0,
                    });
                    self.unwritten.insert(app.uuid.clone());
                }
                let trial = Trial {
                    commit: commit.clone(),
                    began: now,
                    is_paused: false,
                    steady_since: None,
                    gate: GateState::NotAsked,
                    reason: String::new(),
                    is_overdue: false,
                };
                self.trials.insert(app.uuid.clone(), trial);
                self.trials.get_mut(&app.uuid)?
            }
        };
        let starts = record.trial.as_ref().map_or(0, |trial| trial.starts);
        if starts > MOST_STARTS {
            trial.reason = format!(
                "the supervisor has started {starts} times since its services began to run"
            );
            return self.reject(&app.uuid);
        }
        match trial.judge(seen, rules, now) {
            Judgement::Wait => None,
            Judgement::Ask => {
                trial.gate = GateState::Asked;
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
        let Some(trial) = trial.filter(|trial| trial.commit == *commit) else {
            return;
        };
        if trial.gate != GateState::Asked {
            return;
        }
        trial.gate = match verdict {
            ReleaseVerdict::Healthy => GateState::Passed,
            ReleaseVerdict::NotYet { reason, delay } => {
                trial.reason = reason;
                GateState::AskAt(now + delay)
            }
            ReleaseVerdict::Unhealthy { reason } => GateState::Refused(reason),
        };
    }

    fn accept(&mut self, app: &DesiredApp) {
        let record = self.records.entry(app.uuid.clone()).or_default();
        record.healthy = Some(app.clone());
        record.trial = None;
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
        record.trial = None;
        record.rejected.push(rejected.clone());
        let surplus = record.rejected.len().saturating_sub(MOST_REJECTED);
        record.rejected.drain(..surplus);
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
            .filter(move |(app, record)| record.trial.is_some() || is_open(*app))
            .filter_map(|(_, record)| record.healthy.as_ref())
    }

    /// Returns until when the release of an app is on trial, and why it does not count as healthy yet.
    pub(crate) fn on_trial(&self, app: &AppUuid, rules: TrialRules) -> Option<(Instant, String)> {
        let trial = self.trials.get(app)?;
        let reason = if trial.reason.is_empty() {
            "its services have not run for long enough".to_owned()
        } else {
            trial.reason.clone()
        };
        Some((trial.began + rules.time, reason))
    }

    /// Returns the times at which to examine the apps again even if nothing has happened.
    pub(crate) fn times(&self, rules: Option<TrialRules>) -> impl Iterator<Item = Instant> {
        self.trials.values().flat_map(move |trial| {
            let end = rules.map(|rules| trial.began + rules.time);
            let steady = trial.steady_since.zip(rules);
            let steady = steady.map(|(since, rules)| since + rules.steady());
            let question = match trial.gate {
                GateState::AskAt(at) => Some(at),
                _ => None,
            };
            [end, steady, question].into_iter().flatten()
        })
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

#[derive(Debug, PartialEq, Eq)]
enum Judgement {
    Wait,
    Ask,
    Healthy,
    Ill,
}

impl Trial {
    fn judge(&mut self, seen: &AppObservation, rules: TrialRules, now: Instant) -> Judgement {
        let was_busy = std::mem::replace(&mut self.is_paused, seen.is_busy);
        if seen.is_busy || was_busy {
            self.began = now;
        }
        if seen.is_busy {
            self.steady_since = None;
            return Judgement::Wait;
        }
        if let GateState::Refused(reason) = &self.gate {
            self.reason.clone_from(reason);
            return Judgement::Ill;
        }
        let problem = match &seen.services {
            Err(reason) => Some(reason.clone()),
            Ok(()) if !seen.is_whole => Some("not all of its services are there".to_owned()),
            Ok(()) => None,
        };
        if let Some(reason) = problem {
            self.reason = reason;
            self.steady_since = None;
            if self.gate != GateState::Asked {
                self.gate = GateState::NotAsked;
            }
        } else {
            let since = *self.steady_since.get_or_insert(now);
            if self.gate == GateState::NotAsked {
                self.reason.clear();
            }
            let is_steady = now.saturating_duration_since(since) >= rules.steady();
            match self.gate {
                // A release that becomes healthy at the last moment may show that it stays so.
                _ if !is_steady => return Judgement::Wait,
                _ if !rules.has_gates => return Judgement::Healthy,
                GateState::Passed => return Judgement::Healthy,
                GateState::NotAsked => return Judgement::Ask,
                GateState::AskAt(at) if at <= now && now < self.began + rules.time => {
                    return Judgement::Ask;
                }
                _ => {}
            }
        }
        // Plugins answer a query within seconds.
        if now >= self.began + rules.time && self.gate != GateState::Asked {
            return Judgement::Ill;
        }
        Judgement::Wait
    }
}

impl TrialRules {
    fn steady(self) -> Duration {
        STEADY.min(self.time / 2)
    }
}

/// Checks that all services of the release run and are healthy; otherwise returns the problem of the first that is not.
pub(crate) fn state_of_services(
    app: &DesiredApp,
    containers: &[CurrentService],
) -> Result<(), String> {
    for (name, service) in &app.services {
        if !service.running {
            continue;
        }
        let of_service = containers.iter().filter(|it| it.key.service == *name);
        // During a hand-over, the newer container counts.
        let newest = of_service.max_by_key(|container| container.created_at_ms);
        let Some(container) = newest else {
            return Err(format!("the service `{name}` has no container"));
        };
        let problem = match (container.state, container.health) {
            (ContainerState::Running, None | Some(ContainerHealth::Healthy)) => continue,
            // A service that is meant to end has ended.
            (ContainerState::Exited, _) if container.exit_code == Some(0) => continue,
            (ContainerState::Running, Some(ContainerHealth::Starting)) => {
                "has not passed its health check yet".to_owned()
            }
            (ContainerState::Running, Some(ContainerHealth::Unhealthy)) => {
                "fails its health check".to_owned()
            }
            (ContainerState::Restarting, _) => match container.exit_code {
                Some(code) => format!("ends with code {code} and is started again"),
                None => "ends and is started again".to_owned(),
            },
            (ContainerState::Exited, _) => match container.exit_code {
                Some(code) => format!("has ended with code {code}"),
                None => "has ended".to_owned(),
            },
            (ContainerState::Created, _) => "has not been started".to_owned(),
            (ContainerState::Paused, _) => "is paused".to_owned(),
            (ContainerState::Removing | ContainerState::Dead, _) => "is being removed".to_owned(),
        };
        return Err(format!("the service `{name}` {problem}"));
    }
    Ok(())
}

#[cfg(test)]
mod tests;
