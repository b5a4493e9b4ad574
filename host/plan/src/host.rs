//! The host itself: its configuration, and the reboot that parts of it and some services wait for
//! (docs/spec/device.md#reboot-due).

use strum::VariantArray;

use device_types::plan::Blocker;
use model::{BootId, DesiredHost, DesiredService, HostPart};

use crate::current::CurrentState;
use crate::os::OsReboot;
use crate::plan::Plan;
use crate::services::ServicePlan;
use crate::step::Step;
use crate::subject::Subject;

/// The maximum number of reboots in a row for a target that is never reached.
pub const MOST_REBOOTS: u32 = 3;

/// Plans the host's part, after the steps of all apps.
pub(crate) fn plan_host(current: &CurrentState, desired: Option<&DesiredHost>, plan: &mut Plan) {
    let Some(desired) = desired else { return };
    for &part in HostPart::VARIANTS {
        let subject = Subject::Host(part);
        if current.is_busy(&subject) {
            continue;
        }
        // A part that is being checked again right now does not differ, as far as is known.
        let differs = current.host.differs.contains(&part);
        let failure = current.failed.get(&subject);
        if let Some(failure) = failure.filter(|failure| failure.held || !differs) {
            plan.wait(subject, failure.blocker());
        } else if differs {
            plan.steps.push(Step::Configure {
                part,
                desired: desired.clone(),
            });
        }
    }
}

/// Plans a reboot if something waits for one and nothing else can be done or is under way. Neither failed steps that
/// are tried again later nor the locks of apps delay it, although it needs all of these locks.
pub(crate) fn plan_reboot(current: &CurrentState, os: Option<OsReboot>, plan: &mut Plan) {
    let waiting = plan.waiting_on.iter();
    let services = waiting.filter(|waiting| waiting.reason == Blocker::Reboot);
    let mut reasons: Vec<String> = services
        .map(|waiting| waiting.subject.to_string())
        .collect();
    if current.host.reboot_due {
        reasons.insert(0, "the configuration of the host".to_owned());
    }
    reasons.extend(os.as_ref().map(OsReboot::to_string));
    if reasons.is_empty() || !plan.steps.is_empty() || !current.busy.is_empty() {
        return;
    }
    if current.host.reboots < MOST_REBOOTS {
        let activates = os.and_then(OsReboot::activation);
        plan.push(current, Step::Reboot { reasons, activates });
        return;
    }
    let in_vain = Blocker::RebootedInVain {
        times: current.host.reboots,
        reasons: reasons.join(", "),
    };
    plan.wait(Subject::Reboot, in_vain);
}

/// Returns the boot that must end before a new container of `service` is started; `None` if it waits for none.
pub(crate) fn boot_to_wait_for(current: &CurrentState, service: &DesiredService) -> Option<BootId> {
    let waits = service.requires_reboot
        && service.running
        && !current.host.acting.contains(&service.key.app);
    current.host.boot.clone().filter(|_| waits)
}

/// Returns whether the kept container of a service was created in this boot and must be started in the next.
pub(crate) fn waits_for_reboot(current: &CurrentState, planned: &ServicePlan<'_>) -> bool {
    let boot = boot_to_wait_for(current, planned.desired);
    let made_in = planned.kept().and_then(|kept| kept.waits_in_boot.as_ref());
    boot.is_some() && boot.as_ref() == made_in
}
