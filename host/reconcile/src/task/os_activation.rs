//! The loop's part in starting another version of the operating system: it is activated while the locks of all apps are
//! held and before any service is stopped (docs/spec/device.md#os-update-order).

use std::sync::Arc;

use device_types::event::OsProgress;
use model::{ActionError, AppUuid, OsVersion};
use plan::{LockedWork, Subject};
use tokio::time::timeout;
use tracing::Instrument;

use super::ReconcilerTask;
use super::os_update::{CALL, outcome_of, words};
use super::os_view::Hold;
use crate::messages::{Message, RecordWrite, StepFailure};
use crate::step_span;
use crate::{LockPolicy, OsAction, PendingUpdate, UpdatePostponement};

impl ReconcilerTask {
    /// Activates a version, while the locks of all apps are held and before any service is stopped.
    pub(super) fn activate_os(&mut self, version: OsVersion) {
        let (desired, boot) = (self.effective_os().cloned(), self.host.boot.clone());
        let update = &mut self.host.os.update;
        let record = update.begin_activation(&version, desired.as_ref(), boot.as_ref());
        let Some(record) = record else {
            self.hold_activation(Hold::Changed);
            return;
        };
        self.context.log(format!(
            "Activating version {version} of the operating system"
        ));
        let span = step_span::for_activation(&version);
        self.send_os(version, OsProgress::Activating, None, None);
        let context = Arc::clone(&self.context);
        let running = async move {
            // Before the activation: after the boot, nothing else records what was tried.
            if let Err(why) = context.persistence.put_os_record(record).await {
                let why = format!("failed to note that it is activated: {why}");
                context.send(Message::OsRecord(RecordWrite::Failed));
                context.send(Message::OsActivated(Err(why)));
                return;
            }
            context.send(Message::OsRecord(RecordWrite::Done));
            context.moments.reached("os-recorded");
            let host = Arc::clone(&context.host);
            let work = async move { timeout(CALL, host.update_os(&OsAction::Activate)).await };
            let outcome = outcome_of(
                tokio::spawn(work.in_current_span()).await,
                &OsAction::Activate,
            );
            context.moments.reached("os-activated");
            context.send(Message::OsActivated(outcome));
        };
        tokio::spawn(running.instrument(span));
    }

    pub(super) fn os_activated(&mut self, outcome: Result<(), String>) {
        self.host.os.is_stale = true;
        match outcome {
            Ok(()) => {
                self.host.os.note_activation();
                self.write_os_record();
            }
            Err(why) => {
                let line = format!("Failed to {} due to '{why}'", words(&OsAction::Activate));
                self.context.log(line);
                self.host.os.update.activation_failed();
                self.hold_activation(Hold::Failed(why));
            }
        }
    }

    /// Continues once it is stored that the version is activated: otherwise, if the boot loader gave the version up,
    /// this would be mistaken for a power cut before the activation.
    pub(super) fn os_activation_written(&mut self, write: RecordWrite) {
        if !self.host.os.ends_activation(write) {
            return;
        }
        if write == RecordWrite::Done {
            self.begin_to_stop();
        } else {
            self.os_activated(Err("failed to note that it is activated".to_owned()));
        }
    }

    fn hold_activation(&mut self, hold: Hold) {
        let why = hold.to_action_error();
        self.host.os.hold_back(hold);
        self.end_quiesce(why);
    }

    /// Returns the update of an app that the boot of another version amounts to, for plugins that may postpone it. In
    /// local mode, the developer alone decides.
    pub(super) fn os_update_of(
        &self,
        locked: &LockedWork,
        policy: LockPolicy,
    ) -> Option<PendingUpdate> {
        let is_gated = self.host.os.activates.is_some() && policy != LockPolicy::Override;
        if !is_gated || self.local_mode.is_on() {
            return None;
        }
        let commit = self.stored.commits.get(&locked.app);
        Some(PendingUpdate {
            app_id: locked.app_id,
            app: locked.app.clone(),
            services: locked.services.clone(),
            running_commit: commit.cloned(),
            target_commit: self
                .target
                .app(&locked.app)
                .and_then(|app| app.commit.clone()),
        })
    }

    /// Records that a plugin postpones the activation; returns the error for the caller that waits for the locks.
    pub(super) fn os_postponed(
        &mut self,
        app: &AppUuid,
        postponement: UpdatePostponement,
    ) -> ActionError {
        self.send_postponement(app, &postponement);
        let hold = Hold::Postponed(postponement);
        let why = hold.to_action_error();
        self.host.os.hold_back(hold);
        why
    }

    /// Returns whether a reboot did not take place because of the operating system: then other reboots need not wait.
    pub(super) fn os_held_up_reboot(&mut self, outcome: &Result<(), StepFailure>) -> bool {
        let Some(hold) = self.host.os.end_reboot(outcome.is_ok()) else {
            return false;
        };
        match hold {
            Hold::Postponed(postponement) => self.postponed(Subject::Os, postponement),
            Hold::Failed(why) => self.failed(Subject::Os, StepFailure::new(why)),
            Hold::Changed => {}
        }
        self.retries.forget_step(&Subject::Reboot);
        true
    }
}
