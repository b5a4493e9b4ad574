//! The host's operating system: a version is staged while services run, activated with a reboot, and committed once the
//! services are healthy in it, or else rolled back (docs/spec/device.md#os-update).

use device_types::plan::Blocker;
use model::{DesiredHost, DesiredOs, OsVersion};

use crate::current::{CurrentState, OsAttempt, OsPhase, OsStatus, OsVerdict};
use crate::plan::{Gate, Plan};
use crate::step::Step;
use crate::subject::Subject;

/// The purpose of a reboot.
#[derive(Debug, Clone, PartialEq, Eq, derive_more::Display)]
pub(crate) enum OsReboot {
    /// To start a staged version.
    #[display("version {_0} of the operating system")]
    Activation(OsVersion),
    /// To return to the version before one that was rolled back.
    #[display("the operating system before version {_0}")]
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
