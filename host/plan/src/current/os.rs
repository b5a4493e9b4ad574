//! The operating system's part of the observed state.

use std::collections::BTreeSet;

use device_types::Moment;
use model::{BootId, OsVersion};

/// The known state of the operating system, and of the version that is being tried.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CurrentOs {
    /// The last status from its provider; `None` if the device has no provider, or it has not been queried yet.
    pub status: Option<OsStatus>,
    /// The version that is being tried.
    pub attempt: Option<OsAttempt>,
    /// Versions that are not tried again.
    pub rejected: BTreeSet<OsVersion>,
    /// The verdict on the running version while it is being tried.
    pub verdict: OsVerdict,
}

/// The status of the operating system, as the provider reports it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OsStatus {
    /// The running version.
    pub running: OsVersion,
    /// The version that is completely installed in the other slot.
    pub staged: Option<OsVersion>,
    /// Whether the running version is committed.
    pub committed: bool,
    /// The progress of an installation that is under way, in percent.
    pub installing: Option<u8>,
}

/// A version from its activation until it is committed or another one runs again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OsAttempt {
    /// The version.
    pub version: OsVersion,
    /// The boot in which it was activated or rolled back; `None` if somebody else activated it.
    pub boot: Option<BootId>,
    /// Its phase.
    pub phase: OsPhase,
}

/// The phase of an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OsPhase {
    /// The next boot starts it, or it runs already.
    Activated,
    /// It was not healthy, and the next boot may still start it.
    RollingBack,
    /// The next boot starts the previous version.
    RolledBack,
}

/// The verdict on a running version that is not committed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OsVerdict {
    /// It may still become healthy.
    Pending {
        /// The end of its trial.
        until: Moment,
        /// What is missing, in one sentence without a full stop.
        reason: String,
    },
    /// All services of the target run in it and are healthy.
    Healthy,
}

impl Default for OsVerdict {
    /// Until the first check, the version may still become healthy.
    fn default() -> Self {
        OsVerdict::Pending {
            until: Moment(0),
            reason: "its services have not been checked yet".to_owned(),
        }
    }
}
