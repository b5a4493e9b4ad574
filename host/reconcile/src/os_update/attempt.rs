//! The attempt to run a version of the operating system, from its activation until it is committed or another one runs
//! again: what the loop does to it, and what the next boot shows of it.

use model::{BootId, DesiredOs, OsVersion};
use plan::{OsPhase, OsStatus};
use tokio::time::Instant;

use super::record::{OsRecord, StoredAttempt};
use super::trial::OsTrial;
use super::{OsNotice, OsUpdate, RecordState};

impl OsUpdate {
    /// Compares the attempt with the version that runs, and begins its trial or ends the attempt.
    pub(super) fn look_at_attempt(
        &mut self,
        status: &OsStatus,
        desired: Option<&DesiredOs>,
        boot: Option<&BootId>,
        now: Instant,
        notices: &mut Vec<OsNotice>,
    ) {
        let running = &status.running;
        let Some(attempt) = &self.record.attempt else {
            // Somebody else, or a power cut, caused the version to boot before the locks allowed it.
            let is_wanted = desired.is_some_and(|os| os.version == *running);
            let is_committed = status.committed || self.committed.as_ref() == Some(running);
            if is_wanted && !is_committed && self.rejected(running).is_none() {
                self.put_attempt(Some(StoredAttempt::by_other_party(running.clone())));
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
            // The planner rolls it back once more.
            (OsPhase::RollingBack | OsPhase::RolledBack, true) => {}
        }
    }

    /// Records that a version is about to be activated in this boot. The returned record must be stored before the
    /// activation, and the result of [`Self::activated`] afterwards. Returns `None` if the activation is no longer
    /// wanted.
    pub(crate) fn begin_activation(
        &mut self,
        version: &OsVersion,
        desired: Option<&DesiredOs>,
        boot: Option<&BootId>,
    ) -> Option<OsRecord> {
        let is_wanted = desired.is_some_and(|os| os.version == *version);
        let is_free = self.write == RecordState::Written && self.rejected(version).is_none();
        let boot = boot?;
        if !is_wanted || !is_free {
            return None;
        }
        self.record.attempt = Some(StoredAttempt::activating(version.clone(), boot.clone()));
        self.write = RecordState::Writing;
        Some(self.record.clone())
    }

    /// Records that the provider has activated the version.
    pub(crate) fn activated(&mut self) {
        let attempt = self.record.attempt.take().map(StoredAttempt::activated);
        self.put_attempt(attempt);
    }

    /// Records that the version was not activated. If the next boot starts it anyway, it is put on trial like any
    /// version that somebody else activated.
    pub(crate) fn activation_failed(&mut self) {
        self.put_attempt(None);
    }

    /// Records that the running version is committed.
    pub(crate) fn committed(&mut self) {
        self.committed = self.record.attempt.take().map(|attempt| attempt.version);
        self.put_attempt(None);
    }

    /// Records that the next boot starts the version before the one that was tried, in this boot; returns whether a
    /// reboot is needed.
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

    pub(super) fn put_attempt(&mut self, attempt: Option<StoredAttempt>) {
        if attempt.is_none() {
            self.trial = None;
        }
        self.record.attempt = attempt;
        self.write = RecordState::Unwritten;
    }
}
