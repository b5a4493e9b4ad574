//! The host's operating system: a version is staged while services run, activated with a reboot, and committed once the
//! services are healthy in it, or else rolled back (docs/spec/device.md#os-update).

use std::collections::BTreeSet;
use std::fmt;

use device_types::Moment;
use device_types::plan::Blocker;
use model::{BootId, DesiredHost, DesiredOs, OsVersion};

use crate::plan::Gate;
use crate::{CurrentState, Plan, Step, Subject};

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

/// The purpose of a reboot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum OsReboot {
    /// To start a staged version.
    Activation(OsVersion),
    /// To return to the version before one that was rolled back.
    Return(OsVersion),
}

impl OsReboot {
    pub(crate) fn activation(self) -> Option<OsVersion> {
        match self {
            OsReboot::Activation(version) => Some(version),
            OsReboot::Return(_) => None,
        }
    }
}

impl fmt::Display for OsReboot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OsReboot::Activation(version) => {
                write!(f, "version {version} of the operating system")
            }
            OsReboot::Return(version) => {
                write!(f, "the operating system before version {version}")
            }
        }
    }
}

/// Plans the next step for the operating system, and returns the purpose of a reboot if one is needed.
pub(crate) fn plan_os(
    current: &CurrentState,
    desired: Option<&DesiredHost>,
    plan: &mut Plan,
) -> Option<OsReboot> {
    let desired = desired.and_then(|host| host.os.as_ref());
    let os = &current.os;
    if (desired.is_none() && os.attempt.is_none()) || plan.gate(current, &Subject::Os) != Gate::Open
    {
        return None;
    }
    let status = os.status.as_ref()?;
    match &os.attempt {
        Some(attempt) => go_on(current, attempt, status, desired, plan),
        None => begin(current, status, desired?, plan),
    }
}

/// Continues an attempt. It is over if its version neither runs nor is started by the next boot: the reconciler records
/// that at its next check.
fn go_on(
    current: &CurrentState,
    attempt: &OsAttempt,
    status: &OsStatus,
    desired: Option<&DesiredOs>,
    plan: &mut Plan,
) -> Option<OsReboot> {
    let version = &attempt.version;
    let runs = status.running == *version;
    let has_booted = attempt.boot.is_none() || attempt.boot != current.host.boot;
    let roll_back = Step::RollBackOs {
        version: version.clone(),
    };
    match (attempt.phase, has_booted) {
        (OsPhase::Activated, false) => {
            let is_wanted = desired.is_some_and(|os| os.version == *version);
            if is_wanted && !current.os.rejected.contains(version) {
                return Some(OsReboot::Activation(version.clone()));
            }
            plan.steps.push(roll_back);
        }
        (OsPhase::Activated, true) if runs => match &current.os.verdict {
            OsVerdict::Healthy => plan.steps.push(Step::CommitOs {
                version: version.clone(),
            }),
            OsVerdict::Pending { until, reason } => plan.wait(
                Subject::Os,
                Blocker::OsOnTrial {
                    version: version.clone(),
                    until: *until,
                    reason: reason.clone(),
                },
            ),
        },
        (OsPhase::RolledBack, false) => return Some(OsReboot::Return(version.clone())),
        // The boot loader has started the version once more.
        (OsPhase::RollingBack | OsPhase::RolledBack, _) if runs => plan.steps.push(roll_back),
        _ => {}
    }
    None
}

fn begin(
    current: &CurrentState,
    status: &OsStatus,
    desired: &DesiredOs,
    plan: &mut Plan,
) -> Option<OsReboot> {
    let version = &desired.version;
    if status.running == *version || current.os.rejected.contains(version) {
        return None;
    }
    if status.staged.as_ref() == Some(version) {
        return Some(OsReboot::Activation(version.clone()));
    }
    match status.installing {
        Some(percent) => {
            let version = version.clone();
            plan.wait(Subject::Os, Blocker::OsStaging { version, percent });
        }
        None => plan.steps.push(Step::StageOs {
            os: desired.clone(),
        }),
    }
    None
}
