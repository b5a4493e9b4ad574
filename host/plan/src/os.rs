//! The host's operating system: a version is staged while services run, activated with a reboot, and committed when the
//! services are healthy in it, or else rolled back (docs/spec/device.md#os-update).

use std::collections::BTreeSet;
use std::fmt;

use device_types::Moment;
use device_types::plan::Blocker;
use model::{BootId, DesiredHost, DesiredOs, OsVersion};

use crate::plan::Gate;
use crate::{CurrentState, Plan, Step, Subject};

/// What is known of the operating system, and of the version that is being tried.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CurrentOs {
    /// What its provider said last; `None` if the device has none, or it has not been asked.
    pub status: Option<OsStatus>,
    /// The version that is being tried.
    pub attempt: Option<OsAttempt>,
    /// Versions that are not tried again.
    pub rejected: BTreeSet<OsVersion>,
    /// What is found of the version that runs, while it is being tried.
    pub verdict: OsVerdict,
}

/// How things are, as the provider says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OsStatus {
    /// The version that runs.
    pub running: OsVersion,
    /// The version that is installed whole in the other place.
    pub staged: Option<OsVersion>,
    /// The version that runs stays.
    pub committed: bool,
    /// Percent of an installation that is under way.
    pub installing: Option<u8>,
}

/// A version from its activation until it is committed, or until another one runs again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OsAttempt {
    /// The version.
    pub version: OsVersion,
    /// The boot in which it was activated or rolled back; `None` if somebody else activated it.
    pub boot: Option<BootId>,
    /// How far it is.
    pub phase: OsPhase,
}

/// How far an attempt is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OsPhase {
    /// The next boot starts it, or it runs.
    Activated,
    /// It was not healthy, and the next boot may still start it.
    RollingBack,
    /// The next boot starts what ran before it.
    RolledBack,
}

/// What is found of a version that runs and is not committed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OsVerdict {
    /// It may still become healthy.
    Pending {
        /// When its time is over.
        until: Moment,
        /// What is missing, in one sentence without an end.
        reason: String,
    },
    /// All services of the target run in it and are healthy.
    Healthy,
}

impl Default for OsVerdict {
    /// Nobody has looked yet.
    fn default() -> Self {
        OsVerdict::Pending {
            until: Moment(0),
            reason: "its services have not been looked at yet".to_owned(),
        }
    }
}

/// What a reboot is for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum OsReboot {
    /// A version that is staged.
    Activation(OsVersion),
    /// What ran before a version that was rolled back.
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

/// Plans what is done with the operating system, and answers what a reboot is for.
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

/// Goes on with an attempt. One whose version neither runs nor is started by the next boot is over: the reconciler notes
/// that when it looks.
fn go_on(
    current: &CurrentState,
    attempt: &OsAttempt,
    status: &OsStatus,
    wanted: Option<&DesiredOs>,
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
            let is_wanted = wanted.is_some_and(|wanted| wanted.version == *version);
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
        // The boot loader has started it once more.
        (OsPhase::RollingBack | OsPhase::RolledBack, _) if runs => plan.steps.push(roll_back),
        _ => {}
    }
    None
}

fn begin(
    current: &CurrentState,
    status: &OsStatus,
    wanted: &DesiredOs,
    plan: &mut Plan,
) -> Option<OsReboot> {
    let version = &wanted.version;
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
        None => plan.steps.push(Step::StageOs { os: wanted.clone() }),
    }
    None
}
