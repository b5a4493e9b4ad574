//! The version of the host's operating system that is being tried: what the store has to know of it over a reboot, what is
//! found when the provider says how things are, and whether the version is healthy (docs/spec/device.md#os-update). Decides
//! from the state and the time that the loop passes in; the loop calls the provider, asks the plugins, and writes the record.

mod record;
mod trial;

use model::{BootId, DesiredOs, OsVersion};
use plan::{CurrentOs, OsPhase, OsStatus, OsVerdict};
use tokio::time::Instant;

pub(crate) use record::{OsRecord, RejectedOs};
pub(crate) use trial::{OsTrialRules, TrialApp, TrialOutcome};

use record::StoredAttempt;
use trial::OsTrial;

/// How often the supervisor may start during one trial. A version that takes the device down with it never gets to the end
/// of its time.
const MOST_STARTS: u32 = 3;

/// All that is known of the operating system.
#[derive(Debug, Default)]
pub(crate) struct OsUpdate {
    record: OsRecord,
    write: RecordState,
    status: Option<OsStatus>,
    /// The version that runs and is not committed.
    trial: Option<OsTrial>,
    /// The installation that this process has begun and that has not been found to have ended.
    installation: Option<Installation>,
    /// The version that was committed last: a provider that goes on denying it is not asked again and again.
    committed: Option<OsVersion>,
}

/// Whether the store has the record as it is here.
#[derive(Debug, Default, PartialEq, Eq)]
enum RecordState {
    #[default]
    Written,
    Unwritten,
    Writing,
    /// The store did not take it, and is asked again later.
    Failed,
}

#[derive(Debug)]
struct Installation {
    version: OsVersion,
    /// What was there before.
    before: Option<OsVersion>,
}

/// What a look at the operating system, or the end of a step, has shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum OsNotice {
    /// The installation is under way, in percent.
    Staging(OsVersion, u8),
    /// The version is installed whole.
    Staged(OsVersion),
    /// The installation has ended, and the version is not there.
    StagingFailed(String),
    /// The version runs, and is on trial.
    OnTrial(OsVersion),
    /// The device went down before anybody knew whether the version was activated, and came up without it.
    NotActivated(OsVersion),
    /// The version is not tried again.
    Rejected(RejectedOs),
    /// What ran before the version runs again.
    Returned {
        /// The version that was rolled back.
        from: OsVersion,
        /// The version that runs.
        to: OsVersion,
    },
}

impl OsUpdate {
    /// As the store had it when the supervisor started, in this boot.
    pub(crate) fn new(record: OsRecord, boot: Option<&BootId>) -> Self {
        let mut update = OsUpdate {
            record,
            ..OsUpdate::default()
        };
        if let Some(attempt) = &mut update.record.attempt
            && attempt.has_booted(boot)
        {
            attempt.starts = attempt.starts.saturating_add(1);
            update.write = RecordState::Unwritten;
        }
        update
    }

    /// Whether a version is being tried.
    pub(crate) fn has_attempt(&self) -> bool {
        self.record.attempt.is_some()
    }

    /// Whether an installation is under way, or may be.
    pub(crate) fn is_staging(&self) -> bool {
        let is_installing = |status: &OsStatus| status.installing.is_some();
        self.installation.is_some() || self.status.as_ref().is_some_and(is_installing)
    }

    /// How far the installation is that is under way.
    pub(crate) fn progress(&self) -> Option<u8> {
        self.status.as_ref()?.installing
    }

    /// The version that is not tried again, if it is this one.
    pub(crate) fn rejected(&self, version: &OsVersion) -> Option<&RejectedOs> {
        let mut rejected = self.record.rejected.iter();
        rejected.find(|rejected| rejected.version == *version)
    }

    /// Forgets which versions are not tried again.
    pub(crate) fn try_again(&mut self) {
        if !self.record.rejected.is_empty() {
            self.record.rejected.clear();
            self.write = RecordState::Unwritten;
        }
    }

    /// What the planner is told. It is told nothing while the store does not have the record: no step may be ahead of that.
    pub(crate) fn describe(&self, rules: OsTrialRules) -> CurrentOs {
        let status = self.status.clone();
        CurrentOs {
            status: status.filter(|_| self.write == RecordState::Written),
            attempt: self.record.attempt.as_ref().map(StoredAttempt::to_plan),
            rejected: self
                .record
                .rejected
                .iter()
                .map(|rejected| rejected.version.clone())
                .collect(),
            verdict: match &self.trial {
                Some(trial) => trial.verdict(rules),
                None => OsVerdict::default(),
            },
        }
    }

    /// Nobody says how things are.
    pub(crate) fn lost_sight(&mut self) {
        self.status = None;
    }

    /// Takes in how things are; `failure` is why the last installation failed, as the provider says.
    pub(crate) fn look(
        &mut self,
        status: OsStatus,
        failure: Option<String>,
        wanted: Option<&DesiredOs>,
        boot: Option<&BootId>,
        now: Instant,
    ) -> Vec<OsNotice> {
        let mut notices = Vec::new();
        self.look_at_attempt(&status, wanted, boot, now, &mut notices);
        self.look_at_staging(&status, failure, wanted, &mut notices);
        self.status = Some(status);
        notices
    }

    fn look_at_attempt(
        &mut self,
        status: &OsStatus,
        wanted: Option<&DesiredOs>,
        boot: Option<&BootId>,
        now: Instant,
        notices: &mut Vec<OsNotice>,
    ) {
        let running = &status.running;
        let Some(attempt) = &self.record.attempt else {
            // Somebody else, or a power cut, had the version booted before the locks allowed it.
            let is_wanted = wanted.is_some_and(|wanted| wanted.version == *running);
            let is_committed = status.committed || self.committed.as_ref() == Some(running);
            if is_wanted && !is_committed && self.rejected(running).is_none() {
                self.put_attempt(Some(StoredAttempt::of_somebody_else(running.clone())));
                self.trial = Some(OsTrial::new(now));
                notices.push(OsNotice::OnTrial(running.clone()));
            }
            return;
        };
        if !attempt.has_booted(boot) {
            return;
        }
        let (version, phase) = (attempt.version.clone(), attempt.phase());
        match (phase, *running == version) {
            (OsPhase::Activated, true) => {
                if attempt.may_be_inactive() {
                    let attempt = attempt.clone().activated();
                    self.put_attempt(Some(attempt));
                }
                if self.trial.is_none() {
                    self.trial = Some(OsTrial::new(now));
                    notices.push(OsNotice::OnTrial(version));
                }
            }
            (OsPhase::Activated, false) if attempt.may_be_inactive() => {
                notices.push(OsNotice::NotActivated(version));
                self.put_attempt(None);
            }
            (OsPhase::Activated, false) => {
                let reason = format!(
                    "the device came up in version {running}: the boot loader did not start it, or gave it up"
                );
                notices.push(OsNotice::Rejected(self.record.reject(version, reason)));
                self.put_attempt(None);
            }
            (OsPhase::RollingBack | OsPhase::RolledBack, false) => {
                notices.push(OsNotice::Returned {
                    from: version,
                    to: running.clone(),
                });
                self.put_attempt(None);
            }
            // The planner has it rolled back once more.
            (OsPhase::RollingBack | OsPhase::RolledBack, true) => {}
        }
    }

    fn look_at_staging(
        &mut self,
        status: &OsStatus,
        failure: Option<String>,
        wanted: Option<&DesiredOs>,
        notices: &mut Vec<OsNotice>,
    ) {
        if let Some(percent) = status.installing {
            let version = match (&self.installation, wanted) {
                (Some(installation), _) => Some(&installation.version),
                (None, wanted) => wanted.map(|wanted| &wanted.version),
            };
            notices.extend(version.map(|version| OsNotice::Staging(version.clone(), percent)));
            return;
        }
        let Some(Installation { version, before }) = self.installation.take() else {
            return;
        };
        match &status.staged {
            Some(staged) if *staged == version => notices.push(OsNotice::Staged(version)),
            Some(staged) if Some(staged) != before.as_ref() => {
                let reason = format!("the bundle holds version {staged}");
                notices.push(OsNotice::Rejected(self.record.reject(version, reason)));
                self.write = RecordState::Unwritten;
            }
            _ => {
                let failure = failure.unwrap_or_else(|| {
                    format!("the installation has ended, and version {version} is not there")
                });
                notices.push(OsNotice::StagingFailed(failure));
            }
        }
    }

    /// The provider was told to install a version.
    pub(crate) fn staging_begun(&mut self, version: OsVersion) {
        let before = self
            .status
            .as_ref()
            .and_then(|status| status.staged.clone());
        self.installation = Some(Installation { version, before });
    }

    /// Notes that a version is about to be activated in this boot: the store has to have the record before, and what
    /// [`Self::activated`] makes of it afterwards. `None` if that is not to be done any more.
    pub(crate) fn begin_activation(
        &mut self,
        version: &OsVersion,
        wanted: Option<&DesiredOs>,
        boot: Option<&BootId>,
    ) -> Option<OsRecord> {
        let is_wanted = wanted.is_some_and(|wanted| wanted.version == *version);
        let is_free = self.write == RecordState::Written && self.rejected(version).is_none();
        let boot = boot?;
        if !is_wanted || !is_free {
            return None;
        }
        self.record.attempt = Some(StoredAttempt::activating(version.clone(), boot.clone()));
        self.write = RecordState::Writing;
        Some(self.record.clone())
    }

    /// The provider has activated the version.
    pub(crate) fn activated(&mut self) {
        let attempt = self.record.attempt.take().map(StoredAttempt::activated);
        self.put_attempt(attempt);
    }

    /// The version was not activated. If the next boot starts it all the same, it is put on trial as any that somebody else
    /// has activated.
    pub(crate) fn activation_failed(&mut self) {
        self.put_attempt(None);
    }

    /// The version that runs is committed.
    pub(crate) fn committed(&mut self) {
        self.committed = self.record.attempt.take().map(|attempt| attempt.version);
        self.put_attempt(None);
    }

    /// The next boot starts what ran before the version that was tried, in this boot; answers whether it has to be booted.
    pub(crate) fn rolled_back(&mut self, boot: Option<&BootId>) -> bool {
        let runs = |attempt: &StoredAttempt| {
            let status = self.status.as_ref();
            status.is_some_and(|status| status.running == attempt.version)
        };
        let attempt = self.record.attempt.take().filter(runs);
        let attempt = attempt.map(|attempt| attempt.rolled_back(boot));
        let has_to_boot = attempt.is_some();
        self.put_attempt(attempt);
        has_to_boot
    }

    /// Looks at the version that runs, while it is on trial.
    pub(crate) fn judge(
        &mut self,
        apps: &[TrialApp],
        rules: OsTrialRules,
        now: Instant,
    ) -> Option<TrialOutcome> {
        let attempt = self.record.attempt.as_ref()?;
        let starts = attempt.starts;
        let outcome = match &mut self.trial {
            Some(_) if starts > MOST_STARTS => {
                TrialOutcome::Unhealthy(format!("the supervisor has started {starts} times in it"))
            }
            Some(trial) => trial.judge(apps, rules, now)?,
            None => return None,
        };
        if let TrialOutcome::Unhealthy(reason) = &outcome {
            let version = attempt.version.clone();
            let attempt = attempt.clone().rolling_back();
            self.record.reject(version, reason.clone());
            self.put_attempt(Some(attempt));
            self.trial = None;
        }
        Some(outcome)
    }

    /// What the plugins say of an app in the version that is on trial.
    pub(crate) fn answered(
        &mut self,
        app: &model::AppUuid,
        verdict: crate::ReleaseVerdict,
        now: Instant,
    ) {
        if let Some(trial) = &mut self.trial {
            trial.answered(app, verdict, now);
        }
    }

    /// When to judge again without anything having happened.
    pub(crate) fn times(&self, rules: OsTrialRules) -> impl Iterator<Item = Instant> {
        let trial = self.trial.iter();
        trial.flat_map(move |trial| trial.times(rules))
    }

    /// The record to write now.
    pub(crate) fn take_unwritten(&mut self) -> Option<OsRecord> {
        if self.write != RecordState::Unwritten {
            return None;
        }
        self.write = RecordState::Writing;
        Some(self.record.clone())
    }

    /// Whether the record is being written.
    pub(crate) fn is_writing(&self) -> bool {
        self.write == RecordState::Writing
    }

    /// The store has the record that was taken last, unless it has changed meanwhile.
    pub(crate) fn written(&mut self) {
        if self.write == RecordState::Writing {
            self.write = RecordState::Written;
        }
    }

    /// The store did not take the record: nothing is done before it has.
    pub(crate) fn write_failed(&mut self) {
        self.write = RecordState::Failed;
    }

    /// The record is to be written, again if need be.
    pub(crate) fn write_again(&mut self) {
        self.write = RecordState::Unwritten;
    }

    fn put_attempt(&mut self, attempt: Option<StoredAttempt>) {
        if attempt.is_none() {
            self.trial = None;
        }
        self.record.attempt = attempt;
        self.write = RecordState::Unwritten;
    }
}

#[cfg(test)]
mod tests;
