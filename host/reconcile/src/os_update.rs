//! The version of the host's operating system that is being tried: the record that the store keeps over a reboot, the
//! findings from the provider's status, and whether the version is healthy (docs/spec/device.md#os-update). Decides
//! from the state and the time that the loop passes in; the loop calls the provider, queries the plugins, and writes
//! the record.

mod attempt;
mod record;
mod trial;

use model::{BootId, DesiredOs, OsVersion};
use plan::{CurrentOs, OsStatus, OsVerdict};
use tokio::time::Instant;

pub(crate) use record::{OsRecord, RejectedOs};
pub(crate) use trial::{OsTrialRules, TrialApp, TrialOutcome};

use record::StoredAttempt;
use trial::OsTrial;

/// The maximum number of supervisor starts during one trial. A version that crashes the device would otherwise never
/// reach the end of its trial.
const MOST_STARTS: u32 = 3;

/// Everything that is known of the operating system.
#[derive(Debug, Default)]
pub(crate) struct OsUpdate {
    record: OsRecord,
    write: RecordState,
    status: Option<OsStatus>,
    /// The trial of the running, uncommitted version.
    trial: Option<OsTrial>,
    /// The installation that this process has begun and whose end has not been observed.
    installation: Option<Installation>,
    /// The version that was committed last: a provider that keeps denying this is not asked to commit it again and
    /// again.
    committed: Option<OsVersion>,
}

/// Whether the store has the current record.
#[derive(Debug, Default, PartialEq, Eq)]
enum RecordState {
    #[default]
    Written,
    Unwritten,
    Writing,
    /// The write failed, and is repeated later.
    Failed,
}

#[derive(Debug)]
struct Installation {
    version: OsVersion,
    /// The version that was staged before.
    before: Option<OsVersion>,
}

/// A finding from a status of the operating system, or from the end of a step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum OsNotice {
    /// The installation is under way, in percent.
    Staging(OsVersion, u8),
    /// The version is completely installed.
    Staged(OsVersion),
    /// The installation has ended, and the version is not present.
    StagingFailed(String),
    /// The version runs, and is on trial.
    OnTrial(OsVersion),
    /// The device went down before it was known whether the version was activated, and came up without it.
    NotActivated(OsVersion),
    /// The version is not tried again.
    Rejected(RejectedOs),
    /// The previous version runs again.
    Returned {
        /// The version that was rolled back.
        from: OsVersion,
        /// The running version.
        to: OsVersion,
    },
}

impl OsUpdate {
    /// Returns the state from the stored record when the supervisor starts, in this boot.
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

    /// Returns whether a version is being tried.
    pub(crate) fn has_attempt(&self) -> bool {
        self.record.attempt.is_some()
    }

    /// Returns whether an installation is under way, or may be.
    pub(crate) fn is_staging(&self) -> bool {
        let is_installing = |status: &OsStatus| status.installing.is_some();
        self.installation.is_some() || self.status.as_ref().is_some_and(is_installing)
    }

    /// Returns the progress of the installation that is under way.
    pub(crate) fn progress(&self) -> Option<u8> {
        self.status.as_ref()?.installing
    }

    /// Returns the rejected version, if it is this one.
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

    /// Returns the state for the planner. It contains no status until the store has the record: no step may precede
    /// that.
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

    /// Clears the status: the provider does not report it any more.
    pub(crate) fn lost_sight(&mut self) {
        self.status = None;
    }

    /// Processes a status; `failure` is the provider's reason for the failure of the last installation.
    pub(crate) fn look(
        &mut self,
        status: OsStatus,
        failure: Option<String>,
        desired: Option<&DesiredOs>,
        boot: Option<&BootId>,
        now: Instant,
    ) -> Vec<OsNotice> {
        let mut notices = Vec::new();
        self.look_at_attempt(&status, desired, boot, now, &mut notices);
        self.look_at_staging(&status, failure, desired, &mut notices);
        self.status = Some(status);
        notices
    }

    fn look_at_staging(
        &mut self,
        status: &OsStatus,
        failure: Option<String>,
        desired: Option<&DesiredOs>,
        notices: &mut Vec<OsNotice>,
    ) {
        if let Some(percent) = status.installing {
            let version = match (&self.installation, desired) {
                (Some(installation), _) => Some(&installation.version),
                (None, desired) => desired.map(|os| &os.version),
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

    /// Records that the provider has begun to install a version.
    pub(crate) fn staging_begun(&mut self, version: OsVersion) {
        let before = self
            .status
            .as_ref()
            .and_then(|status| status.staged.clone());
        self.installation = Some(Installation { version, before });
    }

    /// Judges the running version while it is on trial.
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

    /// Records the plugins' verdict on an app in the version that is on trial.
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

    /// Returns the times at which to judge again even if nothing has happened.
    pub(crate) fn times(&self, rules: OsTrialRules) -> impl Iterator<Item = Instant> {
        let trial = self.trial.iter();
        trial.flat_map(move |trial| trial.times(rules))
    }

    /// Returns the record to write now.
    pub(crate) fn take_unwritten(&mut self) -> Option<OsRecord> {
        if self.write != RecordState::Unwritten {
            return None;
        }
        self.write = RecordState::Writing;
        Some(self.record.clone())
    }

    /// Returns whether the record is being written.
    pub(crate) fn is_writing(&self) -> bool {
        self.write == RecordState::Writing
    }

    /// Records that the store has the record that was taken last, unless it has changed since.
    pub(crate) fn written(&mut self) {
        if self.write == RecordState::Writing {
            self.write = RecordState::Written;
        }
    }

    /// Records that the write failed: nothing is done until the store has the record.
    pub(crate) fn write_failed(&mut self) {
        self.write = RecordState::Failed;
    }

    /// Marks the record to be written, again if necessary.
    pub(crate) fn write_again(&mut self) {
        self.write = RecordState::Unwritten;
    }
}

#[cfg(test)]
mod tests;
