//! A copy of the loop's state, for a forecast.

use std::borrow::Cow;

use device_types::plan::PlanState;
use plan::Subject;

use super::ReconcilerTask;
use crate::device_plan::LoopSnapshot;

impl ReconcilerTask {
    pub(super) fn loop_snapshot(&mut self) -> LoopSnapshot {
        let state = match self.target.desired() {
            _ if self.local_mode.is_leaving() => PlanState::LeavingLocalMode,
            None => PlanState::NoTarget,
            Some(_) if !self.view.is_known() => PlanState::Looking,
            Some(_) => PlanState::Settled,
        };
        let mut current = self.current();
        // Failed steps that are not verified yet count as busy for the planner, but nothing is being done about them.
        current.busy = self.in_flight.subjects();
        let os_progress = self.host.os.update.progress();
        current
            .busy
            .extend(os_progress.is_some().then_some(Subject::Os));
        let desired = self
            .effective_target()
            .map(Cow::into_owned)
            .unwrap_or_default();
        let apps = desired.apps.keys();
        let apps = apps.chain(current.services.iter().map(|service| &service.key.app));
        LoopSnapshot {
            state,
            overridden: apps
                .filter(|app| self.policy(app) == crate::LockPolicy::Override)
                .cloned()
                .collect(),
            going_down: self.host.quiesce.is_some(),
            blocked_releases: self.blocked_releases(),
            blocked_os: self.host.os.blocker(self.effective_os()),
            os_progress,
            progress: self.context.telemetry.progress.all(),
            current,
            desired,
        }
    }
}
