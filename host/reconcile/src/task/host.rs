//! The loop's part in the host: compares it with the target, and reboots it.

use std::sync::Arc;

use model::{ActionError, OsVersion, TargetState};
use plan::{MOST_REBOOTS, Subject};
use tokio::time::Instant;
use tracing::{Instrument, Span};

use super::ReconcilerTask;
use crate::HostComparison;
use crate::messages::{Message, StepFailure};
use crate::persistence::note_reboots;

impl ReconcilerTask {
    /// Sets the target that the host is compared with.
    pub(super) fn set_host_target(&mut self, target: Option<Arc<TargetState>>) {
        if self.host.set_target(target) {
            self.forget_reboots();
        }
    }

    /// Returns whether the host has a desired configuration and it is unknown whether it matches.
    pub(super) fn host_is_unknown(&self) -> bool {
        self.host.is_unknown(self.target.host())
    }

    /// Starts a comparison of the host if there is a reason for one.
    pub(super) fn look_at_host(&mut self) {
        let now = Instant::now();
        // A comparison during a change would show neither the old state nor the new one.
        let is_changing = |subject: &Subject| matches!(subject, Subject::Host(_));
        let is_retry_due = self.retries.host_is_due(now);
        if !self.host.needs_look(is_retry_due, now) || self.in_flight.any(is_changing) {
            return;
        }
        let Some(desired) = self.target.host().cloned() else {
            return;
        };
        self.host.begin_look();
        let context = Arc::clone(&self.context);
        tokio::spawn(async move {
            let host = Arc::clone(&context.host);
            // In a separate task, so that the loop is informed even if it panics.
            let look = tokio::spawn(async move { host.compare(&desired).await }).await;
            context.send(Message::HostLooked(look.unwrap_or_else(|_| {
                HostComparison {
                    look_again: true,
                    ..HostComparison::default()
                }
            })));
        });
    }

    pub(super) fn host_looked(&mut self, look: HostComparison) {
        let again_at = Instant::now() + self.target.settings.poll_interval;
        let Some(warnings) = self.host.accept(&look, again_at) else {
            return;
        };
        for warning in warnings {
            self.context.telemetry.hub.warning(warning);
        }
        self.retries.forget_parts_as_desired(&look);
        for (part, why) in &look.failed {
            let subject = Subject::Host(*part);
            if self.retries.reason_of(&subject) != Some(why) {
                let line = format!("Failed to change the host's {part} due to '{why}'");
                self.context.telemetry.hub.warning(line);
            }
            self.failed(subject, StepFailure::new(why.clone()));
        }
    }

    /// Reboots the host, once all apps are locked. Not while an action is under way, whose caller would be cut off, nor
    /// before it is known what remains to be done after the last reboot.
    pub(super) fn start_reboot(
        &mut self,
        reasons: &[String],
        activates: Option<OsVersion>,
        span: Span,
    ) {
        if !self.actions.is_empty() || !self.host.can_reboot() {
            return;
        }
        let reasons = reasons.join(", ");
        self.in_flight.begin(Subject::Reboot);
        let count = self.host.begin_reboot(activates);
        let (context, force) = (Arc::clone(&self.context), self.target.is_forced());
        if count == MOST_REBOOTS {
            tracing::warn!(
                count,
                "rebooting for {reasons}: reboot {count}, after which the supervisor does not reboot for this target again"
            );
        }
        let running = async move {
            let outcome = async {
                // Before the reboot: otherwise a device that reboots again and again would never notice.
                let counted = context
                    .persistence
                    .call(move |store| note_reboots(store, count));
                counted.await?;
                let host = Arc::clone(&context.host);
                let reboot = async move { host.reboot(force).await };
                let going = tokio::spawn(reboot.in_current_span()).await;
                let going = going.unwrap_or_else(|_| {
                    let why =
                        "the task that reboots the host ended unexpectedly; the log has the cause";
                    Err(ActionError::Failed(why.into()))
                });
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
                context.send(Message::NotRebooted);
            }
            context.send(Message::Finished(Subject::Reboot, outcome));
        };
        tokio::spawn(running.instrument(span));
    }

    /// Handles that the last reboot does not take place.
    pub(super) fn not_rebooted(&mut self) {
        let count = self.host.uncount_reboot();
        self.note_reboots(count);
    }

    /// Resets the count of reboots: the target is reached, or has changed.
    pub(super) fn forget_reboots(&mut self) {
        if self.host.forget_reboots() {
            self.note_reboots(0);
        }
    }

    fn note_reboots(&self, count: u32) {
        self.context
            .write_later("note how often the device was rebooted", move |store| {
                note_reboots(store, count)
            });
    }
}
