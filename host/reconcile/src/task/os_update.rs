//! The loop's part in updates of the operating system: it queries the status, has the provider do what the plan says,
//! and reports the results (docs/spec/device.md#os-update). `os_activation.rs` activates a version under the locks of
//! all apps, and `os_trial.rs` judges the running version.

use std::sync::Arc;
use std::time::Duration;

use device_types::event::{Audience, Event, OsChanged, OsProgress};
use model::{DesiredOs, OsVersion};
use plan::{CurrentOs, Subject};
use tokio::time::{Instant, timeout};
use tracing::{Instrument, Span};

use super::ReconcilerTask;
use crate::messages::{Message, StepFailure};
use crate::os_update::{OsNotice, OsTrialRules, RejectedOs};
use crate::{OsAction, OsObservation};

/// The time limit for one call of the provider.
pub(super) const CALL: Duration = Duration::from_secs(60);
impl ReconcilerTask {
    /// Returns the version in the cloud's target; none in local mode, in which every service may set a target.
    pub(super) fn effective_os(&self) -> Option<&DesiredOs> {
        if self.local_mode.is_on() {
            return None;
        }
        self.target.host()?.os.as_ref()
    }

    pub(super) fn current_os(&self) -> CurrentOs {
        self.host.os.update.describe(self.os_rules())
    }

    pub(super) fn os_rules(&self) -> OsTrialRules {
        OsTrialRules {
            time: self.target.settings.os_health_time,
            has_gates: self.context.host.judges_releases(),
        }
    }

    /// Starts a query if there is a reason for one.
    pub(super) fn look_at_os(&mut self) {
        self.write_os_record();
        if !self.host.os.needs_look(self.effective_os(), Instant::now()) {
            return;
        }
        // A query during a change would show neither the old state nor the new one.
        let changes = |subject: &Subject| matches!(subject, Subject::Os | Subject::Reboot);
        if self.in_flight.any(changes) || self.host.quiesce.is_some() {
            return;
        }
        self.host.os.begin_look();
        let context = Arc::clone(&self.context);
        tokio::spawn(async move {
            let host = Arc::clone(&context.host);
            // In a separate task, so that the loop is informed even if it panics.
            let look = tokio::spawn(async move { timeout(CALL, host.look_at_os()).await }).await;
            context.send(Message::OsLooked(match look {
                Ok(Ok(look)) => look,
                Ok(Err(_)) => OsObservation::Failed(late("report the state of the operating system")),
                Err(_) => OsObservation::Failed(
                    "the task that checks the operating system ended unexpectedly; the log has the cause"
                        .to_owned(),
                ),
            }));
        });
    }

    pub(super) fn os_looked(&mut self, look: OsObservation) {
        if !self.host.os.accept(&look) {
            return;
        }
        let now = Instant::now();
        let mut next = self.target.settings.poll_interval;
        match look {
            OsObservation::Unavailable => self.host.os.update.lost_sight(),
            OsObservation::Failed(why) => {
                self.host.os.note_unreadable();
                if self.retries.reason_of(&Subject::Os) != Some(&why) {
                    let line = format!("Failed to check the operating system due to '{why}'");
                    self.context.log(line);
                }
                self.failed(Subject::Os, StepFailure::new(why));
                next = self.retries.wait_of(&Subject::Os, now).unwrap_or(next);
            }
            OsObservation::Status { .. } if self.host.boot.is_none() => {
                let why = "failed to read the boot id, without which it is unknown whether a version was started";
                self.host.os.update.lost_sight();
                self.failed(Subject::Os, StepFailure::new(why));
            }
            OsObservation::Status { status, failure } => {
                if self.host.os.note_readable() {
                    self.retries.forget_step(&Subject::Os);
                }
                let target = self.effective_os().cloned();
                let boot = self.host.boot.clone();
                let update = &mut self.host.os.update;
                let notices = update.look(status, failure, target.as_ref(), boot.as_ref(), now);
                for notice in notices {
                    self.take_os_notice(notice);
                }
            }
        }
        self.host.os.look_again(now, next);
    }

    pub(super) fn take_os_notice(&mut self, notice: OsNotice) {
        match notice {
            OsNotice::Staging(version, percent) => {
                if self.host.os.note_progress(percent) {
                    self.send_os(version, OsProgress::Staging, Some(percent), None);
                }
            }
            OsNotice::Staged(version) => {
                self.context.log(format!(
                    "Version {version} of the operating system is staged, and is started once the update locks of all apps allow it"
                ));
                self.send_os(version, OsProgress::Staged, None, None);
            }
            OsNotice::StagingFailed(why) => {
                let line = format!("Failed to stage the operating system due to '{why}'");
                self.context.log(line);
                self.failed(Subject::Os, StepFailure::new(why));
            }
            OsNotice::OnTrial(version) => {
                // The last reboot has had the intended effect.
                self.forget_reboots();
                let seconds = self.target.settings.os_health_time.as_secs();
                self.context.log(format!(
                    "Version {version} of the operating system runs, and has {seconds}s to become healthy"
                ));
                self.send_os(version, OsProgress::OnTrial, None, None);
            }
            OsNotice::NotActivated(version) => self.context.log(format!(
                "The device went down while version {version} of the operating system was being activated, and came up \
                 without it"
            )),
            OsNotice::Rejected(RejectedOs { version, reason }) => {
                self.context.log(format!(
                    "Version {version} of the operating system is not tried again: {reason}"
                ));
                self.send_os(version, OsProgress::Rejected, None, Some(reason));
            }
            OsNotice::Returned { from, to } => {
                self.context.log(format!(
                    "Version {to} of the operating system runs again, since version {from} was not healthy"
                ));
                self.send_os(to, OsProgress::Returned, None, None);
            }
        }
    }

    /// Has the provider do something that needs no locks.
    pub(super) fn start_on_os(&mut self, action: OsAction, span: Span) {
        self.in_flight.begin(Subject::Os);
        let context = Arc::clone(&self.context);
        let running = async move {
            let (host, work) = (Arc::clone(&context.host), action.clone());
            let done = async move { timeout(CALL, host.update_os(&work)).await };
            let outcome = outcome_of(tokio::spawn(done.in_current_span()).await, &action);
            context.send(Message::OsDone(action, outcome.clone()));
            let outcome = outcome.map_err(StepFailure::new);
            context.send(Message::Finished(Subject::Os, outcome));
        };
        tokio::spawn(running.instrument(span));
    }

    pub(super) fn os_done(&mut self, action: OsAction, outcome: Result<(), String>) {
        // Whatever the outcome, the status may have changed.
        self.host.os.is_stale = true;
        if let Err(why) = outcome {
            let line = format!("Failed to {} due to '{why}'", words(&action));
            self.context.log(line);
            return;
        }
        let version = self.current_os().attempt.map(|attempt| attempt.version);
        match (action, version) {
            (OsAction::Stage(os), _) => {
                self.context.log(format!(
                    "Version {} of the operating system is being installed beside the one that runs",
                    os.version
                ));
                self.host.os.begin_staging(os.version);
            }
            (OsAction::Commit, Some(version)) => {
                self.host.os.update.committed();
                self.context.log(format!(
                    "Version {version} of the operating system is healthy, and stays"
                ));
                self.send_os(version, OsProgress::Committed, None, None);
            }
            (OsAction::RollBack, Some(version)) => {
                let boot = self.host.boot.clone();
                let line = if self.host.os.update.rolled_back(boot.as_ref()) {
                    format!(
                        "Version {version} of the operating system is rolled back, and what ran before is started \
                         once the update locks of all apps allow it"
                    )
                } else {
                    format!(
                        "Version {version} of the operating system is not started, since the target no longer asks for it"
                    )
                };
                self.context.log(line);
                self.send_os(version, OsProgress::RolledBack, None, None);
            }
            (OsAction::Activate | OsAction::Commit | OsAction::RollBack, _) => {}
        }
    }

    pub(super) fn send_os(
        &self,
        version: OsVersion,
        state: OsProgress,
        progress: Option<u8>,
        message: Option<String>,
    ) {
        let event = Event::OsUpdate(OsChanged {
            version,
            state,
            progress,
            message,
        });
        self.context.telemetry.send_event(Audience::Owner, event);
    }
}

pub(super) fn outcome_of(
    outcome: Result<
        Result<Result<(), String>, tokio::time::error::Elapsed>,
        tokio::task::JoinError,
    >,
    action: &OsAction,
) -> Result<(), String> {
    match outcome {
        Ok(Ok(outcome)) => outcome,
        Ok(Err(_)) => Err(late(words(action))),
        Err(_) => Err(format!(
            "the attempt to {} ended unexpectedly; the log has the cause",
            words(action)
        )),
    }
}

fn late(what: &str) -> String {
    format!("its provider did not {what} within {}s", CALL.as_secs())
}

pub(super) fn words(action: &OsAction) -> &'static str {
    match action {
        OsAction::Stage(_) => "stage the operating system",
        OsAction::Activate => "activate the operating system",
        OsAction::Commit => "commit the operating system",
        OsAction::RollBack => "roll back the operating system",
    }
}
