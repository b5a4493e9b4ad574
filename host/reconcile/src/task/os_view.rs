//! What the loop knows of the operating system: the last status, whether another one is due, and what the reboot under
//! way is about to start (docs/spec/device.md#os-update). It decides from what the loop passes in; the loop queries the
//! provider, and reports the results.

use std::time::Duration;

use device_types::plan::Blocker;
use model::{ActionError, BootId, DesiredOs, OsVersion};
use tokio::time::Instant;

use crate::messages::RecordWrite;
use crate::os_update::{OsRecord, OsTrialRules, OsUpdate};
use crate::{OsObservation, UpdatePostponement};

/// The interval between queries of the provider while an installation is under way.
const WATCH: Duration = Duration::from_secs(5);

/// The known state of the operating system.
pub(super) struct OsView {
    pub update: OsUpdate,
    /// Whether its status must be queried.
    pub is_stale: bool,
    is_looking: bool,
    /// Whether the last query failed.
    is_unreadable: bool,
    /// Whether this device has no provider.
    is_unavailable: bool,
    /// When its status is queried even if nothing has happened.
    look_at: Option<Instant>,
    /// The version that the reboot under way should start.
    pub activates: Option<OsVersion>,
    /// Whether services are stopped once it is stored that the version is activated.
    stops_once_written: bool,
    /// Why the reboot under way does not take place, if the reboot itself did not fail.
    hold: Option<Hold>,
    /// The progress of the installation in the last event.
    last_percent: Option<u8>,
}

/// The reason why a version is not activated now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Hold {
    /// A plugin postpones it.
    Postponed(UpdatePostponement),
    Failed(String),
    /// It is no longer desired.
    Changed,
}

impl OsView {
    pub(super) fn new(record: OsRecord, boot: Option<&BootId>) -> Self {
        OsView {
            update: OsUpdate::new(record, boot),
            is_stale: true,
            is_looking: false,
            is_unreadable: false,
            is_unavailable: false,
            look_at: None,
            activates: None,
            stops_once_written: false,
            hold: None,
            last_percent: None,
        }
    }

    /// Returns whether anything needs to be done about it, or may need to be.
    fn matters(&self, desired: Option<&DesiredOs>) -> bool {
        desired.is_some() || self.update.has_attempt()
    }

    /// Returns whether its current state is unknown, or the record is being written.
    pub(super) fn is_busy(&self, desired: Option<&DesiredOs>) -> bool {
        let is_unknown = self.is_looking || self.is_stale;
        self.matters(desired) && (is_unknown || self.update.is_writing())
    }

    /// Returns whether there is a reason to query its status now.
    pub(super) fn needs_look(&self, desired: Option<&DesiredOs>, now: Instant) -> bool {
        let is_due = self.look_at.is_some_and(|at| at <= now);
        self.matters(desired) && !self.is_looking && (self.is_stale || is_due)
    }

    /// Records that a query begins.
    pub(super) fn begin_look(&mut self) {
        self.is_stale = false;
        self.is_looking = true;
        self.look_at = None;
    }

    /// Takes the result of a query. Returns whether it counts: the target and the operating system have not changed
    /// meanwhile.
    pub(super) fn accept(&mut self, look: &OsObservation) -> bool {
        self.is_looking = false;
        if self.is_stale {
            return false;
        }
        self.is_unavailable = *look == OsObservation::Unavailable;
        true
    }

    /// Records that the provider failed to report the status.
    pub(super) fn note_unreadable(&mut self) {
        self.is_unreadable = true;
        self.update.lost_sight();
    }

    /// Records that the provider has reported a status; returns whether it failed to before.
    pub(super) fn note_readable(&mut self) -> bool {
        std::mem::take(&mut self.is_unreadable)
    }

    /// Plans the next query, `wait` from now, or earlier while an installation is under way.
    pub(super) fn look_again(&mut self, now: Instant, wait: Duration) {
        let is_staging = self.update.is_staging();
        let wait = if is_staging { wait.min(WATCH) } else { wait };
        self.look_at = Some(now + wait);
    }

    /// Returns the times at which to query or to judge even if nothing has happened.
    pub(super) fn times(&self, rules: OsTrialRules) -> impl Iterator<Item = Instant> {
        let looks = self.look_at.into_iter();
        looks.chain(self.update.times(rules))
    }

    /// Records the progress of the installation; returns whether it has changed.
    pub(super) fn note_progress(&mut self, percent: u8) -> bool {
        self.last_percent.replace(percent) != Some(percent)
    }

    /// Records that the provider has begun to install a version.
    pub(super) fn begin_staging(&mut self, version: OsVersion) {
        self.last_percent = None;
        self.update.staging_begun(version);
    }

    /// Records that the version is activated; services are stopped once that is stored.
    pub(super) fn note_activation(&mut self) {
        self.update.activated();
        self.stops_once_written = true;
    }

    /// Returns whether this write ends the wait of [`Self::note_activation`]; it may have failed.
    pub(super) fn ends_activation(&mut self, write: RecordWrite) -> bool {
        write != RecordWrite::Again && std::mem::take(&mut self.stops_once_written)
    }

    /// Records why the version is not activated now.
    pub(super) fn hold_back(&mut self, hold: Hold) {
        self.hold = Some(hold);
    }

    /// Records the end of a reboot. Returns why the operating system kept it from taking place, if it did.
    pub(super) fn end_reboot(&mut self, is_taking_place: bool) -> Option<Hold> {
        self.activates = None;
        let hold = self.hold.take();
        hold.filter(|_| !is_taking_place)
    }

    /// Returns the version in the target, if it is not tried again.
    pub(super) fn rejected(&self, desired: Option<&DesiredOs>) -> Option<OsVersion> {
        let rejected = self.update.rejected(&desired?.version)?;
        Some(rejected.version.clone())
    }

    /// Returns why no step leads to the version in the target, for people.
    pub(super) fn blocker(&self, desired: Option<&DesiredOs>) -> Option<Blocker> {
        let version = desired?.version.clone();
        if let Some(rejected) = self.update.rejected(&version) {
            let reason = rejected.reason.clone();
            return Some(Blocker::OsRejected { version, reason });
        }
        self.is_unavailable
            .then_some(Blocker::OsUnavailable { version })
    }
}

impl Hold {
    /// Returns the error for a caller that waits for the locks.
    pub(super) fn to_action_error(&self) -> ActionError {
        match self {
            Hold::Postponed(postponement) => ActionError::Locked(format!(
                "the plugin `{}` postpones it: {}",
                postponement.plugin, postponement.reason
            )),
            Hold::Failed(why) => ActionError::Failed(why.clone()),
            Hold::Changed => {
                ActionError::Failed("the target no longer asks for the version".to_owned())
            }
        }
    }
}

#[cfg(test)]
mod tests;
