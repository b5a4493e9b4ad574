//! The stored record of updates of the operating system.

use model::{BootId, OsVersion};
use plan::{OsAttempt, OsPhase};
use serde::{Deserialize, Serialize};

/// The maximum number of remembered rejected versions; the newest are kept.
const MOST_REJECTED: usize = 8;

/// The stored record of updates of the operating system.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct OsRecord {
    #[serde(default)]
    pub(super) attempt: Option<StoredAttempt>,
    /// Versions that are not tried again, the latest at the end.
    #[serde(default)]
    pub(super) rejected: Vec<RejectedOs>,
}

/// A version that was tried, and why it is not tried again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct RejectedOs {
    pub version: OsVersion,
    /// The problem, in one sentence without a full stop.
    pub reason: String,
}

/// A version from its activation until it is committed or another one runs again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct StoredAttempt {
    pub(super) version: OsVersion,
    /// The boot in which it was activated or rolled back; `None` if somebody else activated it.
    boot: Option<BootId>,
    phase: StoredPhase,
    /// The number of supervisor starts in it.
    #[serde(default)]
    pub(super) starts: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum StoredPhase {
    /// The provider was about to be asked to activate it, and it is unknown whether it has.
    Activating,
    Activated,
    RollingBack,
    RolledBack,
}

impl OsRecord {
    /// Records that a version is not tried again.
    pub(super) fn reject(&mut self, version: OsVersion, reason: String) -> RejectedOs {
        let rejected = RejectedOs { version, reason };
        self.rejected.retain(|it| it.version != rejected.version);
        self.rejected.push(rejected.clone());
        let surplus = self.rejected.len().saturating_sub(MOST_REJECTED);
        self.rejected.drain(..surplus);
        rejected
    }
}

impl StoredAttempt {
    pub(super) fn activating(version: OsVersion, boot: BootId) -> Self {
        StoredAttempt {
            boot: Some(boot),
            phase: StoredPhase::Activating,
            ..StoredAttempt::by_other_party(version)
        }
    }

    pub(super) fn activated(self) -> Self {
        StoredAttempt {
            phase: StoredPhase::Activated,
            ..self
        }
    }

    /// Returns whether the provider may not have activated it.
    pub(super) fn may_be_inactive(&self) -> bool {
        self.phase == StoredPhase::Activating
    }

    /// Returns an attempt for a version that runs although this supervisor did not activate it.
    pub(super) fn by_other_party(version: OsVersion) -> Self {
        StoredAttempt {
            version,
            boot: None,
            phase: StoredPhase::Activated,
            starts: 0,
        }
    }

    pub(super) fn rolling_back(self) -> Self {
        StoredAttempt {
            phase: StoredPhase::RollingBack,
            ..self
        }
    }

    pub(super) fn rolled_back(self, boot: Option<&BootId>) -> Self {
        StoredAttempt {
            phase: StoredPhase::RolledBack,
            boot: boot.cloned(),
            ..self
        }
    }

    /// Returns whether the device has booted since it was activated or rolled back.
    pub(super) fn has_booted(&self, boot: Option<&BootId>) -> bool {
        self.boot.is_none() || self.boot.as_ref() != boot
    }

    pub(super) fn phase(&self) -> OsPhase {
        match self.phase {
            StoredPhase::Activating | StoredPhase::Activated => OsPhase::Activated,
            StoredPhase::RollingBack => OsPhase::RollingBack,
            StoredPhase::RolledBack => OsPhase::RolledBack,
        }
    }

    pub(super) fn to_plan(&self) -> OsAttempt {
        OsAttempt {
            version: self.version.clone(),
            boot: self.boot.clone(),
            phase: self.phase(),
        }
    }
}
