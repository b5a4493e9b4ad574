//! The loop's part in the host: compares it with the target, and reboots it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use model::{ActionError, BootId, DesiredHost, OsVersion, TargetState, Verb};
use plan::{CurrentHost, MOST_REBOOTS, Subject};
use tokio::time::Instant;

use super::ReconcilerTask;
use super::os_update::OsView;
use super::quiesce::Quiesce;
use crate::HostLook;
use crate::actions::ActionPhase;
use crate::messages::{Message, StepFailure};
use crate::os_update::OsRecord;
use crate::persistence::note_reboots;

/// The known state of the host.
pub(super) struct HostView {
    /// The target with its desired configuration.
    target: Option<Arc<TargetState>>,
    pub boot: Option<BootId>,
    /// The last comparison.
    look: HostLook,
    /// Whether it must be compared.
    pub is_stale: bool,
    /// Whether it was compared at least once.
    was_seen: bool,
    /// Whether a comparison is under way.
    is_looking: bool,
    /// When it is compared even if nothing has happened.
    pub look_at: Option<Instant>,
    reboots: u32,
    /// Set when it is about to go down.
    pub quiesce: Option<Quiesce>,
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
            look: HostLook::default(),
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
}

impl ReconcilerTask {
    /// Sets the target that the host is compared with.
    pub(super) fn aim_host_at(&mut self, target: Option<Arc<TargetState>>) {
        self.host.is_stale = true;
        self.host.os.is_stale = true;
        // The same target again, such as at the first poll after a reboot, is no new reason to reboot.
        if self.host.target != target {
            self.host.target = target;
            self.forget_reboots();
        }
    }

    pub(super) fn wanted_of_host(&self) -> Option<&DesiredHost> {
        self.target.desired.as_ref()?.host.as_ref()
    }

    /// Returns whether the host has a desired configuration and it is unknown whether it matches.
    pub(super) fn host_is_unknown(&self) -> bool {
        // At the start a comparison takes as long as loading the plugins: an empty configuration need not wait for
        // that.
        let matters = self
            .wanted_of_host()
            .is_some_and(|desired| self.host.was_seen || *desired != DesiredHost::default());
        matters && (self.host.is_stale || self.host.is_looking)
    }

    /// Starts a comparison of the host if there is a reason for one.
    pub(super) fn look_at_host(&mut self) {
        let now = Instant::now();
        let due = |at: Instant| at <= now;
        let failed = self.retries.host_is_due(now);
        let stale = self.host.is_stale || failed || self.host.look_at.is_some_and(due);
        if !stale || self.host.is_looking {
            return;
        }
        // A comparison during a change would show neither the old state nor the new one.
        if self
            .in_flight
            .any(|subject| matches!(subject, Subject::Host(_)))
        {
            return;
        }
        let Some(desired) = self.wanted_of_host().cloned() else {
            return;
        };
        self.host.is_stale = false;
        self.host.is_looking = true;
        self.host.look_at = None;
        let context = Arc::clone(&self.context);
        tokio::spawn(async move {
            let host = Arc::clone(&context.host);
            // In a separate task, so that the loop is informed even if it panics.
            let look = tokio::spawn(async move { host.compare(&desired).await }).await;
            context.tell(Message::HostLooked(look.unwrap_or_else(|_| HostLook {
                look_again: true,
                ..HostLook::default()
            })));
        });
    }

    pub(super) fn host_looked(&mut self, look: HostLook) {
        self.host.is_looking = false;
        self.host.was_seen = true;
        if self.host.is_stale {
            // The target or the host has changed meanwhile.
            return;
        }
        for warning in &look.warnings {
            if self.host.logged_warnings.insert(warning.clone()) {
                self.context.telemetry.hub.warning(warning.clone());
            }
        }
        let logged = &mut self.host.logged_warnings;
        logged.retain(|warning| look.warnings.contains(warning));
        if look.look_again {
            self.host.look_at = Some(Instant::now() + self.target.settings.poll_interval);
        }
        self.retries.steps.retain(|subject, _| match subject {
            Subject::Host(part) => look.failed.contains_key(part) || look.differs.contains(part),
            _ => true,
        });
        for (part, why) in &look.failed {
            let subject = Subject::Host(*part);
            let failure = self.retries.steps.get(&subject);
            if failure.is_none_or(|failure| failure.reason != *why) {
                let line = format!("Failed to change the host's {part} due to '{why}'");
                self.context.telemetry.hub.warning(line);
            }
            self.failed(subject, StepFailure::new(why.clone()));
        }
        self.host.look = look;
    }

    /// Returns the state of the host for the planner.
    pub(super) fn current_host(&self) -> CurrentHost {
        let look = &self.host.look;
        let starts = self.actions.current().filter(|underway| {
            let state = &underway.state;
            state.phase != ActionPhase::Waiting && !matches!(state.verb, Verb::Stop(_))
        });
        CurrentHost {
            // A comparison made before the target changed does not apply to the new one.
            differs: if self.host.is_stale || self.host.is_looking {
                BTreeSet::new()
            } else {
                look.differs.clone()
            },
            boot: self.host.boot.clone(),
            reboot_due: look.reboot_due,
            reboots: self.host.reboots,
            acting: starts.map(|underway| underway.app.clone()).collect(),
        }
    }

    /// Reboots the host, once all apps are locked. Not while an action is under way, whose caller would be cut off, nor
    /// before it is known what remains to be done after the last reboot.
    pub(super) fn start_reboot(&mut self, reasons: &[String], activates: Option<OsVersion>) {
        let is_known = !self.host.is_stale && !self.host.is_looking;
        if !self.actions.is_empty() || self.host.quiesce.is_some() || !is_known {
            return;
        }
        let reasons = reasons.join(", ");
        self.in_flight.begin(Subject::Reboot);
        self.host.os.activates = activates;
        self.host.reboots += 1;
        let (context, force, count) = (
            Arc::clone(&self.context),
            self.target.force,
            self.host.reboots,
        );
        if count == MOST_REBOOTS {
            tracing::warn!(count, "reboot {count}, and the last one, for {reasons}");
        }
        tokio::spawn(async move {
            let outcome = async {
                // Before the reboot: otherwise a device that reboots again and again would never notice.
                let counted = context
                    .journal
                    .call(move |store| note_reboots(store, count));
                counted.await?;
                let host = Arc::clone(&context.host);
                let going = tokio::spawn(async move { host.reboot(force).await }).await;
                let going =
                    going.unwrap_or_else(|_| Err(ActionError::Failed("it broke off".into())));
                match going {
                    Ok(()) => {
                        context.log(format!("Rebooting for {reasons}"));
                        Ok(())
                    }
                    Err(error) => {
                        context.log(format!("The reboot for {reasons} waits. Reason: {error}"));
                        Err(StepFailure::new(error.to_string()))
                    }
                }
            };
            let outcome = outcome.await;
            if outcome.is_err() {
                context.tell(Message::NotRebooted);
            }
            context.tell(Message::Finished(Subject::Reboot, outcome));
        });
    }

    /// Handles that the last reboot does not take place.
    pub(super) fn not_rebooted(&mut self) {
        let count = self.host.reboots.saturating_sub(1);
        self.note_reboots(count);
    }

    /// Resets the count of reboots: the target is reached, or has changed.
    pub(super) fn forget_reboots(&mut self) {
        if self.host.reboots > 0 {
            self.note_reboots(0);
        }
    }

    pub(super) fn note_reboots(&mut self, count: u32) {
        self.host.reboots = count;
        self.context
            .write_later("note how often the device was rebooted", move |store| {
                note_reboots(store, count)
            });
    }
}
