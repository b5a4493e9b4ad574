//! Releases on trial: whether the release that an app was updated to is healthy within its time, and what takes its place
//! if it is not (docs/spec/device.md#release-health). Decides from the state and the time that the loop passes in; the loop
//! observes, asks the plugins, and writes the records.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use model::{
    AppId, AppUuid, Commit, ContainerHealth, ContainerState, CurrentService, DesiredApp,
    DesiredState, ImageRef, RejectedRelease, ServiceName,
};
use serde::{Deserialize, Serialize};
use tokio::time::Instant;

use crate::ReleaseVerdict;

/// How long a release has to look healthy without a break before it counts. A service that ends and is started again looks
/// healthy between two of its runs.
const STEADY: Duration = Duration::from_secs(10);
/// How often the supervisor may start during one trial. A release that takes the device down with it never gets to the end
/// of its time.
const MOST_STARTS: u32 = 3;
/// How many releases of an app are remembered as not healthy, the newest.
const MOST_REJECTED: usize = 8;

/// What the store keeps of an app's releases, under the app's uuid.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ReleaseRecord {
    /// The app as it was when its release was last found healthy: what the device goes back to.
    #[serde(default)]
    healthy: Option<DesiredApp>,
    /// Releases that were not healthy, the last one at the end.
    #[serde(default)]
    rejected: Vec<RejectedRelease>,
    #[serde(default)]
    trial: Option<StoredTrial>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct StoredTrial {
    commit: Commit,
    /// How often the supervisor has started since the trial began.
    starts: u32,
}

/// A release that was installed a short while ago.
#[derive(Debug)]
struct Trial {
    commit: Commit,
    /// When its time began.
    began: Instant,
    /// Its time does not pass at the moment.
    is_paused: bool,
    steady_since: Option<Instant>,
    gate: GateState,
    /// Why it is not healthy yet.
    reason: String,
    /// Its time is over, and there is nothing to go back to: that was said.
    is_overdue: bool,
}

/// What the plugins say of a release.
#[derive(Debug, PartialEq, Eq)]
enum GateState {
    NotAsked,
    Asked,
    /// They are asked again.
    AskAt(Instant),
    Passed,
    /// One of them refuses it, and why.
    Refused(String),
}

/// All that is known of the releases of all apps.
#[derive(Debug, Default)]
pub(crate) struct ReleaseTrials {
    records: BTreeMap<AppUuid, ReleaseRecord>,
    trials: BTreeMap<AppUuid, Trial>,
    /// The apps as the target has them whose releases are not tried again.
    displaced: BTreeMap<AppUuid, DesiredApp>,
    /// Records that the store does not have yet.
    unwritten: BTreeSet<AppUuid>,
    /// Records that are being written: those of one app are written one after the other.
    writing: BTreeSet<AppUuid>,
}

/// What is demanded of a new release.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TrialRules {
    /// The time that a release has to become healthy.
    pub time: Duration,
    /// Plugins are asked.
    pub has_gates: bool,
}

/// How an app is at this moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct AppObservation {
    /// A container of the release is there.
    pub has_begun: bool,
    /// All of the release is as the target says.
    pub is_whole: bool,
    /// Images are pulled for it, or an action of the API is under way: its time stands still.
    pub is_busy: bool,
    /// Whether all services run and are healthy; else what is wrong, in one sentence.
    pub services: Result<(), String>,
}

/// What is to be done about a trial.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum TrialStep {
    /// Ask the plugins.
    AskGates,
    /// Go back to this release, once the record is written.
    Reject {
        rejected: RejectedRelease,
        back_to: Option<Commit>,
    },
    /// The release is healthy.
    Accept,
    /// Say that it is not healthy, and that there is no other.
    Complain(RejectedRelease),
}

impl ReleaseTrials {
    /// As the store had it when the supervisor started.
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

    /// Puts the last healthy release of an app in the place of one that was not healthy.
    pub(crate) fn substitute(&mut self, desired: &mut DesiredState, secrets: &[String]) {
        self.displaced.clear();
        for uuid in desired.apps.keys().cloned().collect::<Vec<_>>() {
            self.go_back(&uuid, desired, secrets);
        }
    }

    /// The target has other apps than those of the cloud.
    pub(crate) fn substitute_none(&mut self) {
        self.displaced.clear();
    }

    /// As [`Self::substitute`], for one app; answers whether it was done. `secrets` are the variables of services with
    /// their keys to the API, which the device may have replaced since.
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
            let Some(wanted) = app.services.get(name) else {
                continue;
            };
            for variable in secrets {
                let held = service.config.environment.get_mut(variable);
                if let (Some(held), Some(key)) = (held, wanted.config.environment.get(variable)) {
                    held.clone_from(key);
                }
            }
        }
        let displaced = std::mem::replace(app, healthy);
        self.displaced.insert(uuid.clone(), displaced);
        true
    }

    /// The healthy release that is run in place of that of `app`, if that was not healthy.
    fn healthy_instead_of(&self, app: &DesiredApp) -> Option<DesiredApp> {
        let commit = app.commit.as_ref()?;
        let record = self.records.get(&app.uuid)?;
        let is_rejected = record.rejected.iter().any(|it| it.commit == *commit);
        let healthy = record.healthy.as_ref()?;
        let is_other = healthy.commit.as_ref() != Some(commit);
        let is_applied = !app.not_ours && !app.rejected;
        (is_rejected && is_other && is_applied).then(|| healthy.clone())
    }

    /// The release of the target that was not healthy, and is not tried again.
    pub(crate) fn rejected_release(&self, app: &AppUuid) -> Option<&RejectedRelease> {
        let commit = self.displaced.get(app)?.commit.as_ref()?;
        let rejected = &self.records.get(app)?.rejected;
        rejected.iter().rev().find(|it| it.commit == *commit)
    }

    /// Those of all apps.
    pub(crate) fn rejected_releases(&self) -> BTreeMap<AppUuid, RejectedRelease> {
        let apps = self.displaced.keys();
        apps.filter_map(|app| Some((app.clone(), self.rejected_release(app)?.clone())))
            .collect()
    }

    /// Forgets which releases were not healthy, and puts the target's back in their places: somebody wants them to be
    /// tried again. Answers whether any is.
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

    /// Forgets the apps that the target has no more.
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

    /// Looks at one app. Without rules every release counts as healthy once all of it runs.
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
            // The record of that is being written, or there is nothing to go back to.
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

    /// Takes what the plugins say of a release.
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

    /// Ends a trial that was lost.
    fn reject(&mut self, app: &AppUuid) -> Option<TrialStep> {
        let record = self.records.get_mut(app)?;
        let trial = self.trials.get_mut(app)?;
        let rejected = RejectedRelease {
            commit: trial.commit.clone(),
            reason: trial.reason.clone(),
        };
        let Some(healthy) = &record.healthy else {
            // It goes on, and may still become healthy.
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

    /// The images that a device may have to go back to while releases are on trial.
    pub(crate) fn images_to_keep(&self) -> BTreeSet<ImageRef> {
        let services = self
            .healthy_on_trial()
            .flat_map(|app| app.services.values());
        services
            .map(|service| service.config.image.clone())
            .collect()
    }

    /// The services that a device may have to go back to while releases are on trial.
    pub(crate) fn services_to_keep(&self) -> impl Iterator<Item = (AppId, ServiceName)> {
        self.healthy_on_trial()
            .flat_map(|app| app.services.keys().map(|name| (app.id, name.clone())))
    }

    fn healthy_on_trial(&self) -> impl Iterator<Item = &DesiredApp> {
        // Also between the end of a trial and the record of it, after which the device goes back.
        let is_open = |app| self.unwritten.contains(app) || self.writing.contains(app);
        let records = self.records.iter();
        records
            .filter(move |(app, record)| record.trial.is_some() || is_open(*app))
            .filter_map(|(_, record)| record.healthy.as_ref())
    }

    /// Until when the release of an app is on trial, and why it does not count as healthy yet.
    pub(crate) fn on_trial(&self, app: &AppUuid, rules: TrialRules) -> Option<(Instant, String)> {
        let trial = self.trials.get(app)?;
        let reason = if trial.reason.is_empty() {
            "its services have not run for long enough".to_owned()
        } else {
            trial.reason.clone()
        };
        Some((trial.began + rules.time, reason))
    }

    /// When to look again without anything having happened.
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

    /// The records to write now, each as it is; absent if nothing is kept of the app.
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

    /// The store has the record that was taken last.
    pub(crate) fn written(&mut self, app: &AppUuid) {
        self.writing.remove(app);
    }

    /// The store does not have the record that was taken last.
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
                // What becomes healthy at the last moment may show that it stays so.
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
        // Plugins that are asked answer within seconds.
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

/// Whether all services of the release run and are healthy; else what is wrong with the first that is not.
pub(crate) fn state_of_services(
    app: &DesiredApp,
    containers: &[CurrentService],
) -> Result<(), String> {
    for (name, service) in &app.services {
        if !service.running {
            continue;
        }
        let of_service = containers.iter().filter(|it| it.key.service == *name);
        // While one takes over from the other, the newer counts.
        let newest = of_service.max_by_key(|container| container.created_at_ms);
        let Some(container) = newest else {
            return Err(format!("the service `{name}` has no container"));
        };
        let problem = match (container.state, container.health) {
            (ContainerState::Running, None | Some(ContainerHealth::Healthy)) => continue,
            // What is meant to end has done so.
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
