//! What the loop knows of the host: the last comparison with the target, and whether another one is due. It decides
//! from what the loop passes in; the loop compares, reboots and logs.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use model::{AppUuid, BootId, DesiredHost, OsVersion, TargetState};
use plan::CurrentHost;
use tokio::time::Instant;

use super::os_view::OsView;
use super::quiesce_state::QuiesceState;
use crate::HostComparison;
use crate::os_update::OsRecord;

/// The known state of the host.
pub(super) struct HostView {
    /// The target with its desired configuration.
    target: Option<Arc<TargetState>>,
    pub boot: Option<BootId>,
    /// The last comparison.
    look: HostComparison,
    /// Whether it must be compared.
    is_stale: bool,
    /// Whether it was compared at least once.
    was_seen: bool,
    /// Whether a comparison is under way.
    is_looking: bool,
    /// When it is compared even if nothing has happened.
    look_at: Option<Instant>,
    reboots: u32,
    /// Set when it is about to go down.
    pub quiesce: Option<QuiesceState>,
    /// Its operating system.
    pub os: OsView,
    /// Warnings that were logged, so that each is logged once.
    logged_warnings: BTreeSet<String>,
}

impl HostView {
    pub(super) fn new(
        target: Option<Arc<TargetState>>,
        boot: Option<BootId>,
        reboots: u32,
        os: OsRecord,
    ) -> Self {
        HostView {
            target,
            os: OsView::new(os, boot.as_ref()),
            boot,
            look: HostComparison::default(),
            is_stale: true,
            was_seen: false,
            is_looking: false,
            look_at: None,
            reboots,
            quiesce: None,
            logged_warnings: BTreeSet::new(),
        }
    }

    /// Returns the variables in force.
    pub(super) fn variables(&self) -> Option<BTreeMap<String, String>> {
        let target = self.target.as_ref();
        target.map(|target| target.config.clone())
    }

    /// Sets the target that the host is compared with; returns whether it is another one. The same target again, such
    /// as at the first poll after a reboot, is no new reason to reboot.
    pub(super) fn set_target(&mut self, target: Option<Arc<TargetState>>) -> bool {
        self.mark_all();
        let is_other = self.target != target;
        if is_other {
            self.target = target;
        }
        is_other
    }

    /// Marks its configuration to be compared.
    pub(super) fn mark(&mut self) {
        self.is_stale = true;
    }

    /// Marks everything to be looked at: its configuration and its operating system.
    pub(super) fn mark_all(&mut self) {
        self.is_stale = true;
        self.os.is_stale = true;
    }

    /// Records that it does not go down, and continues in this boot.
    pub(super) fn resume(&mut self, boot: Option<BootId>) {
        self.quiesce = None;
        self.boot = boot;
        self.mark_all();
    }

    /// Returns whether the last comparison applies to the target and the host as they are now.
    fn is_known(&self) -> bool {
        !self.is_stale && !self.is_looking
    }

    /// Returns whether it has a desired configuration and it is unknown whether it matches.
    pub(super) fn is_unknown(&self, desired: Option<&DesiredHost>) -> bool {
        // At the start a comparison takes as long as loading the plugins: an empty configuration need not wait for
        // that.
        let matters =
            desired.is_some_and(|desired| self.was_seen || *desired != DesiredHost::default());
        matters && !self.is_known()
    }

    /// Returns whether there is a reason to compare it now; a part of it that failed may be due for another attempt.
    pub(super) fn needs_look(&self, is_retry_due: bool, now: Instant) -> bool {
        let is_due = self.look_at.is_some_and(|at| at <= now);
        (self.is_stale || is_retry_due || is_due) && !self.is_looking
    }

    /// Records that a comparison begins.
    pub(super) fn begin_look(&mut self) {
        self.is_stale = false;
        self.is_looking = true;
        self.look_at = None;
    }

    /// Takes the result of a comparison, which may have to be repeated at `again_at`. Returns the warnings that were not
    /// logged yet, or `None` if the target or the host has changed meanwhile.
    pub(super) fn accept(
        &mut self,
        look: &HostComparison,
        again_at: Instant,
    ) -> Option<Vec<String>> {
        self.is_looking = false;
        self.was_seen = true;
        if self.is_stale {
            return None;
        }
        if look.look_again {
            self.look_at = Some(again_at);
        }
        let logged = &mut self.logged_warnings;
        let warnings = look.warnings.iter();
        let new = warnings.filter(|warning| logged.insert(warning.to_string()));
        let new = new.cloned().collect();
        logged.retain(|warning| look.warnings.contains(warning));
        self.look = look.clone();
        Some(new)
    }

    /// Returns the time at which it is compared even if nothing has happened.
    pub(super) fn next_look(&self) -> Option<Instant> {
        self.look_at
    }

    /// Returns its state for the planner; `acting` are the apps whose services somebody has requested to start.
    pub(super) fn describe(&self, acting: BTreeSet<AppUuid>) -> CurrentHost {
        CurrentHost {
            // A comparison made before the target changed does not apply to the new one.
            differs: if self.is_known() {
                self.look.differs.clone()
            } else {
                BTreeSet::new()
            },
            boot: self.boot.clone(),
            reboot_due: self.look.reboot_due,
            reboots: self.reboots,
            acting,
        }
    }

    /// Returns whether it can be rebooted: it is not going down already, and it is known what remains to be done after
    /// the last reboot.
    pub(super) fn can_reboot(&self) -> bool {
        self.quiesce.is_none() && self.is_known()
    }

    /// Counts a reboot that starts this version of the operating system, if it is another one; returns the number of
    /// reboots for the target.
    pub(super) fn begin_reboot(&mut self, activates: Option<OsVersion>) -> u32 {
        self.os.activates = activates;
        self.reboots += 1;
        self.reboots
    }

    /// Uncounts a reboot that does not take place; returns the number that is left.
    pub(super) fn uncount_reboot(&mut self) -> u32 {
        self.reboots = self.reboots.saturating_sub(1);
        self.reboots
    }

    /// Resets the number of reboots, since the target is reached or has changed; returns whether there were any.
    pub(super) fn forget_reboots(&mut self) -> bool {
        std::mem::take(&mut self.reboots) > 0
    }
}

#[cfg(test)]
mod tests;
